package lvm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// parseSize parses "16m", "4194304b", "1g" (lvm(8), "Size"). Without a letter it is MiB.
func parseSize(s string) (uint64, error) {
	shift := map[byte]int{'b': 0, 's': 9, 'k': 10, 'm': 20, 'g': 30, 't': 40, 'p': 50}
	by, digits := 20, strings.ToLower(s)
	if s != "" {
		if n, ok := shift[digits[len(digits)-1]]; ok {
			by, digits = n, digits[:len(digits)-1]
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 {
		return 0, misused("Invalid argument for size: %s", s)
	}
	return uint64(n * float64(uint64(1)<<by)), nil
}

// pvcreate labels devices. On a device with content it asks a question, and it gets no answer here.
func pvcreate(c *command) error {
	if len(c.Words) == 0 || c.Has("uuid") && len(c.Words) != 1 {
		return misused("Please enter a physical volume path.")
	}
	for _, name := range c.Words {
		if _, err := c.label(name); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) label(name string) (*pv, error) {
	dev := c.m.Lookup(name)
	id := cmp.Or(c.Set["uuid"], newID())
	switch p := c.at(name); {
	case dev == nil || !slices.Contains(c.devices, dev):
		return nil, said("No device found for %s.", name)
	case c.Has("uuid") && (len(id) != 38 || !plainID([]byte(strings.ReplaceAll(id, "-", "")))):
		return nil, said("UUID \"%s\" is invalid.", id)
	case c.Has("uuid") && !c.Has("norestorefile") && !c.Has("restorefile"):
		return nil, misused("--restorefile is required with --uuid")
	case c.Has("uuid") && c.on[id] != nil && c.on[id] != dev:
		return nil, said("uuid %s already in use on \"/dev/%s\".", id, c.on[id].Name)
	case c.used(p, name) != nil:
		return nil, c.used(p, name)
	case p != nil && p.group != nil:
		return nil, said("Can't initialize physical volume \"%s\" of volume group \"%s\" without -ff\n%[1]s: physical volume not initialized.", name, p.group.name)
	case dev.Busy():
		return nil, said("Can't open %s exclusively.  Mounted filesystem?", name)
	}
	if err := c.clear(dev); err != nil {
		return nil, err
	}
	start := uint64(1 << 20)
	if c.Has("metadatasize") {
		size, err := parseSize(c.Set["metadatasize"])
		if err != nil {
			return nil, err
		}
		start = (1<<20 + size + 1<<20 - 1) &^ (1<<20 - 1) // aligned to 1 MiB
	}
	if dev.Length() < start+4<<20 {
		return nil, said("%s: Data area is beyond end of device!\nFormat-specific initialisation of physical volume %[1]s failed.", name)
	}
	if err := c.zero(dev, 0, 4096); err != nil {
		return nil, err
	}
	if err := dev.Write(content.LVMLabel(id), 512); err != nil {
		return nil, err
	}
	if err := c.writeMetadata(dev, nil); err != nil {
		return nil, err
	}
	p := &pv{uuid: id, size: dev.Length(), start: start, hint: dev.Name}
	c.m.physical[id], c.on[id] = p, dev
	dev.Changed()
	c.Say("  Physical volume \"%s\" successfully created.", name)
	return p, c.point()
}

// clear checks a device for signatures, as wipe_known_signatures does.
func (c *command) clear(dev *block.Device) error {
	kind, udev := content.Recognize(dev.Read)
	if kind == "gpt" || kind == "mbr" {
		return said("Cannot use /dev/%s: device is partitioned", dev.Name)
	}
	if kind == "" || kind == "lvm" {
		return nil
	}
	_, format, _ := strings.Cut(udev, "=")
	if !c.Has("yes") {
		return said("WARNING: %s signature detected on /dev/%s at offset 0. Wipe it? [y/n]: [n]\n  Aborted wiping of %[1]s.\n  1 existing signature left on the device.", format, dev.Name)
	}
	c.Say("  Wiping %s signature on /dev/%s.", format, dev.Name)
	return c.wipe(dev)
}

// wipe removes all known signatures, and nothing else.
func (c *command) wipe(dev *block.Device) error {
	for _, row := range content.Formats {
		for _, mark := range row.Marks {
			have := make([]byte, len(mark.Data))
			if dev.Read(have, mark.At); string(have) != string(mark.Data) {
				continue
			}
			if err := c.zero(dev, mark.At, uint64(len(mark.Data))); err != nil {
				return err
			}
		}
	}
	return nil
}

func pvremove(c *command) error {
	for _, name := range c.Words {
		p := c.at(name)
		switch {
		case p == nil:
			return said("No PV found on device %s.", name)
		case p.group != nil:
			return said("PV %s is used by VG %s so please use vgreduce first.\n(If you are certain you need pvremove, then confirm by using --force twice.)", name, p.group.name)
		case c.on[p.uuid].Busy():
			return said("Can't open %s exclusively - not removing. Mounted filesystem?", name)
		}
		if err := c.zero(c.on[p.uuid], 512, 512); err != nil {
			return err
		}
		c.on[p.uuid].Changed()
		delete(c.m.physical, p.uuid)
		delete(c.on, p.uuid)
		if err := c.point(); err != nil {
			return err
		}
	}
	return nil
}
