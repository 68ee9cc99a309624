package block

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// system is what the machine boots from: a partition, or a mirror of two.
type system struct {
	Drives []*Drive
	nodes  []*sysfs.Node // of the mirror
}

const mirror = "sys/devices/virtual/block/md0"

// findSystem finds the boot drives. A description may have none.
func (m *Devices) findSystem() error {
	for _, d := range m.Drives {
		if d.System {
			m.System.Drives = append(m.System.Drives, d)
		}
	}
	if n := len(m.System.Drives); n > 2 {
		return fmt.Errorf("%d system drives: want one, or two for a mirror", n)
	}
	return nil
}

func (m *Devices) Mirrored() bool { return len(m.System.Drives) == 2 }

// refreshSystem rebuilds the mirror from the present halves.
func (m *Devices) refreshSystem() {
	for _, n := range m.System.nodes {
		m.Tree.Drop(n)
	}
	m.System.nodes = nil
	if !m.Mirrored() {
		return
	}
	var halves []string
	var size uint64
	for _, d := range m.System.Drives {
		if d.Present && len(d.Parts) == 2 {
			halves = append(halves, m.mustResolve("sys/class/block/"+d.Parts[1].Name))
			size = d.Parts[1].sectors
		}
	}
	put := func(path, text string) {
		m.System.nodes = append(m.System.nodes, m.Tree.Put(path, &sysfs.Node{Text: text}))
	}
	link := func(path, target string) {
		m.System.nodes = append(m.System.nodes, m.Tree.Put(path, &sysfs.Node{Link: sysfs.Relative(path, target)}))
	}
	for name, text := range map[string]string{
		"dev": "9:0\n", "size": fmt.Sprintln(size - 264192), "stat": strings.Repeat("       0 ", 16) + "       0\n", "inflight": "       0        0\n",
		"ro": "0\n", "removable": "0\n", "hidden": "0\n", "range": "1\n", "ext_range": "256\n", "uevent": sysfs.DevUevent("9:0", "md0", "disk"),
		"md/level": "raid1\n", "md/raid_disks": "2\n", "md/array_state": "clean\n", "md/degraded": fmt.Sprintln(2 - len(halves)), "md/metadata_version": "1.2\n",
		"queue/logical_block_size": "512\n", "queue/physical_block_size": "512\n", "queue/rotational": "0\n", "queue/zoned": "none\n", "queue/scheduler": "none\n",
	} {
		put(mirror+"/"+name, text)
	}
	link(mirror+"/subsystem", "sys/class/block")
	link("sys/block/md0", mirror)
	link("sys/class/block/md0", mirror)
	link("sys/dev/block/9:0", mirror)
	for _, half := range halves {
		_, name := sysfs.Split(half)
		link(mirror+"/slaves/"+name, half)
		link(half+"/holders/md0", mirror)
	}
}

// booted reports whether the machine runs from a device.
func (m *Devices) booted(d *Device) bool {
	return d.Drive != nil && d.Drive.System && d.Number > 0 && d.Number <= 2 && len(m.System.Drives) > 0
}
