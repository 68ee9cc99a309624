package block

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Mapped holds what a device on top of other devices has: of device-mapper, if it has a title.
type Mapped struct {
	dev    *Device
	Volume *VolumeName // nil: not from LVM
	Title  string      // device-mapper's name
	UUID   string      // device-mapper's UUID
	below  []*Device
	links  map[*Device][]*sysfs.Node // links in slaves and holders
}

// VolumeName is the name of a logical volume.
type VolumeName struct {
	Group, Name string
	Visible     bool
}

// mapperMajor is the major number that device-mapper usually gets.
const mapperMajor = 253

// MapDevice adds a device of device-mapper.
func (m *Devices) MapDevice(x Mapped, data Backing, below []*Device) *Device {
	minor := 0
	for m.Blocks[fmt.Sprintf("dm-%d", minor)] != nil {
		minor++
	}
	return m.mapDevice(x, fmt.Sprintf("dm-%d", minor), fmt.Sprintf("%d:%d", mapperMajor, minor), data, below)
}

// AddVirtual adds a device of another driver that has no disk of its own.
func (m *Devices) AddVirtual(name, num string, data Backing) *Device {
	return m.mapDevice(Mapped{}, name, num, data, nil)
}

func (m *Devices) mapDevice(x Mapped, name, num string, data Backing, below []*Device) *Device {
	d := &Device{Entries: sysfs.Entries{Tree: m.Tree}, Devices: m, Name: name, Num: num, Dir: "sys/devices/virtual/block/" + name, Data: data, block: 512}
	x.dev = d
	d.Mapped = &x
	m.Blocks[name] = d
	d.showMapped()
	d.Mapped.Hold(below)
	d.Event("add")
	d.Event("change")
	return d
}

// Hold replaces the devices below.
func (x *Mapped) Hold(below []*Device) {
	for _, d := range x.below {
		x.lost(d)
		d.Above = slices.DeleteFunc(d.Above, func(up *Device) bool { return up == x.dev })
	}
	x.below, x.links = nil, map[*Device][]*sysfs.Node{}
	for _, d := range below {
		x.dev.block = max(x.dev.block, d.block)
		if slices.Contains(x.below, d) || d.Gone {
			continue
		}
		x.below = append(x.below, d)
		d.Above = append(d.Above, x.dev)
		slave, holder := x.dev.Dir+"/slaves/"+d.Name, d.Dir+"/holders/"+x.dev.Name
		t := x.dev.Tree
		x.links[d] = []*sysfs.Node{t.Put(slave, &sysfs.Node{Link: sysfs.Relative(slave, d.Dir)}), t.Put(holder, &sysfs.Node{Link: sysfs.Relative(holder, x.dev.Dir)})}
	}
}

// lost removes the links to a device below.
func (x *Mapped) lost(d *Device) {
	for _, n := range x.links[d] {
		x.dev.Tree.Drop(n)
	}
	delete(x.links, d)
}

// Unmap removes a mapped device.
func (d *Device) Unmap() {
	d.Event("remove")
	d.Mapped.Hold(nil)
	d.remove()
}

func (d *Device) Event(action string) {
	env := map[string]string{"DEVTYPE": "disk"}
	if title := d.Mapped.Title; title != "" {
		env["DM_NAME"] = title
	}
	d.Devices.Uevent(action, "block", d.Dir, d.Name, env)
}

// showMapped adds the entries of a mapped device in sysfs, udev and /dev.
func (d *Device) showMapped() {
	v, title := d.Mapped.Volume, d.Mapped.Title
	seq := d.Devices.NextSeq()
	d.Files(d.Dir, "dev", d.Num+"\n", "range", "1\n", "ext_range", "1\n", "hidden", "0\n", "removable", "0\n", "alignment_offset", "0\n", "discard_alignment", "0\n",
		"capability", "0\n", "diskseq", fmt.Sprintln(seq), "uevent", sysfs.DevUevent(d.Num, d.Name, "disk")+fmt.Sprintf("DISKSEQ=%d\n", seq),
		"queue/logical_block_size", fmt.Sprintln(d.block), "queue/hw_sector_size", fmt.Sprintln(d.block), "queue/physical_block_size", "4096\n", "queue/rotational", "0\n",
		"queue/zoned", "none\n", "queue/scheduler", "none\n", "queue/discard_max_bytes", "2199023255040\n", "queue/discard_granularity", "4096\n", "queue/read_ahead_kb", "128\n")
	d.Live(d.Dir+"/size", func() string { return fmt.Sprintln(d.Length() / 512) })
	d.Live(d.Dir+"/ro", func() string { return sysfs.Bool(d.RefusesWrites()) })
	d.Live(d.Dir+"/stat", func() string {
		return strings.Repeat("       0 ", 8) + fmt.Sprintf("%8d", d.waiting()) + strings.Repeat("        0", 8) + "\n"
	})
	d.Live(d.Dir+"/inflight", func() string { return fmt.Sprintf("%8d %8d\n", d.waiting(), 0) })
	d.Folders(d.Dir+"/slaves", d.Dir+"/holders")
	d.Link(d.Dir+"/subsystem", "sys/class/block")
	d.Link("sys/block/"+d.Name, d.Dir)
	d.Link("sys/class/block/"+d.Name, d.Dir)
	d.Link("sys/dev/block/"+d.Num, d.Dir)
	d.Link(d.Dir+"/bdi", "sys/devices/virtual/bdi/"+d.Num)
	d.File("sys/devices/virtual/bdi/"+d.Num+"/read_ahead_kb", "128\n")
	d.File("dev/"+d.Name, "")
	links := ""
	if title != "" {
		d.Files(d.Dir, "dm/name", title+"\n", "dm/uuid", d.Mapped.UUID+"\n", "dm/suspended", "0\n", "dm/rq_based_seq_io_merge_deadline", "0\n", "dm/use_blk_mq", "1\n")
		d.Link("dev/mapper/"+title, "dev/"+d.Name)
		links = "S:mapper/" + title + "\n"
	}
	if v != nil && v.Visible {
		d.Link("dev/"+v.Group+"/"+v.Name, "dev/"+d.Name)
		links += "S:" + v.Group + "/" + v.Name + "\n"
	}
	d.Live("run/udev/data/b"+d.Num, func() string {
		var lines []string
		if title != "" {
			lines = []string{"E:DM_NAME=" + title, "E:DM_UUID=" + d.Mapped.UUID}
		}
		if v != nil {
			lines = append(lines, "E:DM_VG_NAME="+v.Group, "E:DM_LV_NAME="+v.Name)
		}
		if v == nil || v.Visible {
			lines = append(lines, content.UdevFound(d.Read)...)
		}
		return links + strings.Join(lines, "\n") + sysfs.UdevEnd
	})
}

// waiting returns the number of requests that wait for hung drives below.
func (d *Device) waiting() int {
	if d.Drive != nil {
		return d.Drive.inflight()
	}
	n := 0
	for _, b := range d.Mapped.below {
		n = max(n, b.waiting())
	}
	return n
}

// MappedAs returns the mapped device with the device-mapper name. The caller holds the lock.
func (m *Devices) MappedAs(title string) *Device {
	for _, d := range m.Blocks {
		if d.Mapped != nil && d.Mapped.Title == title {
			return d
		}
	}
	return nil
}
