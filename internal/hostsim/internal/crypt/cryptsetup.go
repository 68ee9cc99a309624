package crypt

import (
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
)

// Exit statuses of cryptsetup(8).
const (
	cryptMisused = 1
	cryptNoKey   = 2
	cryptNoDev   = 4
	cryptBusy    = 5
)

var cryptActions = map[string]func(*program.Process, program.Flags) int{
	"luksFormat": luksFormat, "open": luksOpen, "luksOpen": luksOpen, "close": luksClose, "luksClose": luksClose, "resize": luksResize,
	"luksAddKey": luksAddKey, "luksRemoveKey": luksRemoveKey, "status": luksStatus, "luksErase": luksErase, "isLuks": luksIs, "luksUUID": luksIs,
}

// Cryptsetup runs cryptsetup(8) 2.6.
func Cryptsetup(p *program.Process) int {
	f, err := program.Getopt(p.Argv[1:], "qd:", "batch-mode", "version", "type:", "uuid:", "label:", "subsystem:", "offset:", "luks2-keyslots-size:", "pbkdf:", "pbkdf-memory:",
		"pbkdf-parallel:", "pbkdf-force-iterations:", "iter-time:", "key-file:", "keyfile-size:", "test-passphrase", "sector-size:")
	switch {
	case err != nil:
		return p.Fail(cryptMisused, "Usage: cryptsetup [OPTION...] <action> <action-specific>\ncryptsetup: %v", err)
	case f.Has("version"):
		p.Say("cryptsetup 2.6.1 flags: UDEV BLKID KEYRING KERNEL_CAPI")
		return 0
	case len(f.Words) < 2 || cryptActions[f.Words[0]] == nil:
		return p.Fail(cryptMisused, "Usage: cryptsetup [OPTION...] <action> <action-specific>\ncryptsetup: Unknown action.")
	case f.Has("key-file") && f.Set["key-file"] != "-":
		return p.Fail(cryptMisused, "Failed to open key file.")
	}
	do := cryptActions[f.Words[0]]
	f.Words = f.Words[1:]
	return do(p, f)
}

// onHeader calls work with the device and its header, with the lock held.
func onHeader(p *program.Process, name string, write bool, work func(dev *block.Device, h content.LUKSHeader, is bool) int) int {
	dev := p.Device(name)
	if dev == nil {
		return p.Fail(cryptNoDev, "Device %s does not exist or access denied.", name)
	}
	code := 0
	err := dev.Do(p.Ctx, block.Access{Write: write, N: 1 << 20}, func() error {
		h, is := content.ReadLUKS(dev.Read)
		code = work(dev, h, is)
		return nil
	})
	if err != nil {
		return p.Fail(cryptNoDev, "Device %s: %s", name, program.Reason(err))
	}
	return code
}

func luksFormat(p *program.Process, f program.Flags) int {
	if f.Set["type"] != "luks2" || !f.Has("batch-mode") && !f.Has("q") || len(p.Input) == 0 {
		return p.Fail(cryptMisused, "Nothing to read on input.")
	}
	if _, ok := content.ParseUUID(f.Set["uuid"]); !ok {
		return p.Fail(cryptMisused, "Wrong LUKS UUID format provided.")
	}
	sectors, err := strconv.ParseUint(f.Set["offset"], 10, 40)
	if err != nil || len(f.Set["label"]) > 47 || len(f.Set["subsystem"]) > 47 {
		return p.Fail(cryptMisused, "cryptsetup: invalid numeric value")
	}
	return onHeader(p, f.Words[0], true, func(dev *block.Device, _ content.LUKSHeader, _ bool) int {
		if dev.Busy() {
			return p.Fail(cryptBusy, "Cannot use device %s which is in use (already mapped or mounted).", f.Words[0])
		}
		if dev.Length() <= sectors*512 {
			return p.Fail(cryptMisused, "Device %s is too small.", f.Words[0])
		}
		h := content.LUKSHeader{UUID: f.Set["uuid"], Label: f.Set["label"], Subsystem: f.Set["subsystem"], LUKSKeys: content.LUKSKeys{Offset: sectors * 512, Slots: []content.LUKSSlot{content.NewSlot(p.Input, content.NewKey())}}}
		if h.Store(dev.Write) != nil {
			return p.Fail(cryptNoDev, "Cannot wipe header on device %s.", f.Words[0])
		}
		dev.Changed()
		return 0
	})
}

func luksOpen(p *program.Process, f program.Flags) int {
	test := f.Has("test-passphrase")
	if !test && len(f.Words) != 2 {
		return p.Fail(cryptMisused, "cryptsetup: open requires <device> [--type <type>] [<name>] as arguments")
	}
	return onHeader(p, f.Words[0], false, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		if !is {
			return p.Fail(cryptMisused, "Device %s is not a valid LUKS device.", f.Words[0])
		}
		key, ok := h.Key(p.Input)
		switch {
		case len(h.Slots) == 0:
			return p.Fail(cryptMisused, "No usable keyslot is available.")
		case !ok:
			return p.Fail(cryptNoKey, "No key available with this passphrase.")
		case test:
			return 0
		case p.Devices.MappedAs(f.Words[1]) != nil:
			return p.Fail(cryptBusy, "Device %s already exists.", f.Words[1])
		case dev.Busy():
			return p.Fail(cryptBusy, "Cannot use device %s which is in use (already mapped or mounted).", f.Words[0])
		}
		data := &crypt{below: dev, off: h.Offset, size: dev.Length() - h.Offset, key: key}
		title := f.Words[1]
		p.Devices.MapDevice(block.Mapped{Title: title, UUID: "CRYPT-LUKS2-" + strings.ReplaceAll(h.UUID, "-", "") + "-" + title}, data, []*block.Device{dev})
		return 0
	})
}

func luksClose(p *program.Process, f program.Flags) int {
	p.Devices.Mu.Lock()
	defer p.Devices.Mu.Unlock()
	d := p.Devices.MappedAs(f.Words[0])
	switch {
	case d == nil:
		return p.Fail(cryptNoDev, "Device %s is not active.", f.Words[0])
	case d.Claimed() || d.Handles > 0:
		return p.Fail(cryptBusy, "Device %s is still in use.", f.Words[0])
	}
	d.Unmap()
	return 0
}

// luksResize needs the passphrase: the kernel keeps the key where another process cannot find it.
func luksResize(p *program.Process, f program.Flags) int {
	p.Devices.Mu.Lock()
	defer p.Devices.Mu.Unlock()
	d := p.Devices.MappedAs(f.Words[0])
	if d == nil {
		return p.Fail(cryptNoDev, "Device %s is not active.", f.Words[0])
	}
	c, ok := d.Data.(*crypt)
	if !ok {
		return p.Fail(cryptMisused, "Device %s is not a crypt device.", f.Words[0])
	}
	h, _ := content.ReadLUKS(c.below.Read)
	if key, ok := h.Key(p.Input); !ok || key != c.key {
		return p.Fail(cryptNoKey, "No key available with this passphrase.")
	}
	c.size = c.below.Length() - c.off
	d.Changed()
	return 0
}

// luksAddKey reads the old passphrase and the new one from its input, one after the other.
// keyfile-size gives the length of the first.
func luksAddKey(p *program.Process, f program.Flags) int {
	n, err := strconv.Atoi(f.Set["keyfile-size"])
	if err != nil || n <= 0 || n >= len(p.Input) || len(f.Words) != 2 || f.Words[1] != "-" || f.Set["key-file"] != "-" {
		return p.Fail(cryptMisused, "Nothing to read on input.")
	}
	return onHeader(p, f.Words[0], true, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		key, ok := h.Key(p.Input[:n])
		switch {
		case !is:
			return p.Fail(cryptMisused, "Device %s is not a valid LUKS device.", f.Words[0])
		case !ok:
			return p.Fail(cryptNoKey, "No key available with this passphrase.")
		case len(h.Slots) == content.MaxSlots:
			return p.Fail(cryptMisused, "All key slots full.")
		}
		h.Slots = append(h.Slots, content.NewSlot(p.Input[n:], key))
		if h.Store(dev.Write) != nil {
			return p.Fail(cryptNoDev, "Cannot write header on device %s.", f.Words[0])
		}
		return 0
	})
}

// luksRemoveKey removes the last key slot as well, without a question (2.6.1, tried).
func luksRemoveKey(p *program.Process, f program.Flags) int {
	return onHeader(p, f.Words[0], true, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		i := h.Opens(p.Input)
		switch {
		case !is:
			return p.Fail(cryptMisused, "Device %s is not a valid LUKS device.", f.Words[0])
		case i < 0:
			return p.Fail(cryptNoKey, "No key available with this passphrase.")
		}
		h.Slots = slices.Delete(h.Slots, i, i+1)
		if h.Store(dev.Write) != nil {
			return p.Fail(cryptNoDev, "Cannot write header on device %s.", f.Words[0])
		}
		return 0
	})
}

func luksStatus(p *program.Process, f program.Flags) int {
	p.Devices.Mu.RLock()
	defer p.Devices.Mu.RUnlock()
	if d := p.Devices.MappedAs(f.Words[0]); d == nil {
		p.Say("/dev/mapper/%s is inactive.", f.Words[0])
		return cryptNoDev
	}
	p.Say("/dev/mapper/%s is active.\n  type:    LUKS2\n  cipher:  aes-xts-plain64", f.Words[0])
	return 0
}

func luksErase(p *program.Process, f program.Flags) int {
	return onHeader(p, f.Words[0], true, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		h.Slots = nil
		if !is || h.Store(dev.Write) != nil {
			return p.Fail(cryptMisused, "Device %s is not a valid LUKS device.", f.Words[0])
		}
		return 0
	})
}

// luksIs reports by its exit status whether a device has a header; luksUUID prints the UUID.
func luksIs(p *program.Process, f program.Flags) int {
	return onHeader(p, f.Words[0], false, func(_ *block.Device, h content.LUKSHeader, is bool) int {
		if !is {
			return cryptMisused
		}
		if p.Argv[1] == "luksUUID" {
			p.Say("%s", h.UUID)
		}
		return 0
	})
}
