package hostsim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// mapped holds the device-mapper part of a device.
type mapped struct {
	dev    *device
	volume *volumeName // nil: not from LVM
	title  string      // device-mapper's name
	uuid   string      // device-mapper's UUID
	below  []*device
	links  map[*device][]*sysfs.Node // links in slaves and holders
}

// volumeName is the name of a logical volume.
type volumeName struct {
	group, name string
	visible     bool
}

// mapperMajor is the major number that device-mapper usually gets.
const mapperMajor = 253

// mapDevice adds a device of device-mapper.
func (m *devices) mapDevice(x mapped, data backing, below []*device) *device {
	minor := 0
	for m.blocks[fmt.Sprintf("dm-%d", minor)] != nil {
		minor++
	}
	name := fmt.Sprintf("dm-%d", minor)
	d := &device{Entries: sysfs.Entries{Tree: m.Tree}, m: m, name: name, num: fmt.Sprintf("%d:%d", mapperMajor, minor), dir: "sys/devices/virtual/block/" + name, data: data, block: 512}
	x.dev = d
	d.mapped = &x
	m.blocks[name] = d
	d.showMapped()
	d.mapped.hold(below)
	d.event("add")
	d.event("change")
	return d
}

// hold replaces the devices below.
func (x *mapped) hold(below []*device) {
	for _, d := range x.below {
		x.lost(d)
		d.above = slices.DeleteFunc(d.above, func(up *device) bool { return up == x.dev })
	}
	x.below, x.links = nil, map[*device][]*sysfs.Node{}
	for _, d := range below {
		x.dev.block = max(x.dev.block, d.block)
		if slices.Contains(x.below, d) || d.gone {
			continue
		}
		x.below = append(x.below, d)
		d.above = append(d.above, x.dev)
		slave, holder := x.dev.dir+"/slaves/"+d.name, d.dir+"/holders/"+x.dev.name
		t := x.dev.Tree
		x.links[d] = []*sysfs.Node{t.Put(slave, &sysfs.Node{Link: sysfs.Relative(slave, d.dir)}), t.Put(holder, &sysfs.Node{Link: sysfs.Relative(holder, x.dev.dir)})}
	}
}

// lost removes the links to a device below.
func (x *mapped) lost(d *device) {
	for _, n := range x.links[d] {
		x.dev.Tree.Drop(n)
	}
	delete(x.links, d)
}

// unmap removes a mapped device.
func (d *device) unmap() {
	d.event("remove")
	d.mapped.hold(nil)
	d.remove()
}

func (d *device) event(action string) {
	d.m.Uevent(action, "block", d.dir, d.name, map[string]string{"DEVTYPE": "disk", "DM_NAME": d.mapped.title})
}

// showMapped adds the entries of a mapped device in sysfs, udev and /dev.
func (d *device) showMapped() {
	v, title := d.mapped.volume, d.mapped.title
	seq := d.m.NextSeq()
	d.Files(d.dir, "dev", d.num+"\n", "range", "1\n", "ext_range", "1\n", "hidden", "0\n", "removable", "0\n", "alignment_offset", "0\n", "discard_alignment", "0\n",
		"capability", "0\n", "diskseq", fmt.Sprintln(seq), "uevent", sysfs.DevUevent(d.num, d.name, "disk")+fmt.Sprintf("DISKSEQ=%d\n", seq),
		"dm/name", title+"\n", "dm/uuid", d.mapped.uuid+"\n", "dm/suspended", "0\n", "dm/rq_based_seq_io_merge_deadline", "0\n", "dm/use_blk_mq", "1\n",
		"queue/logical_block_size", fmt.Sprintln(d.block), "queue/hw_sector_size", fmt.Sprintln(d.block), "queue/physical_block_size", "4096\n", "queue/rotational", "0\n",
		"queue/zoned", "none\n", "queue/scheduler", "none\n", "queue/discard_max_bytes", "2199023255040\n", "queue/discard_granularity", "4096\n", "queue/read_ahead_kb", "128\n")
	d.Live(d.dir+"/size", func() string { return fmt.Sprintln(d.length() / 512) })
	d.Live(d.dir+"/ro", func() string { return sysfs.Bool(d.refusesWrites()) })
	d.Live(d.dir+"/stat", func() string {
		return strings.Repeat("       0 ", 8) + fmt.Sprintf("%8d", d.waiting()) + strings.Repeat("        0", 8) + "\n"
	})
	d.Live(d.dir+"/inflight", func() string { return fmt.Sprintf("%8d %8d\n", d.waiting(), 0) })
	d.Folders(d.dir+"/slaves", d.dir+"/holders")
	d.Link(d.dir+"/subsystem", "sys/class/block")
	d.Link("sys/block/"+d.name, d.dir)
	d.Link("sys/class/block/"+d.name, d.dir)
	d.Link("sys/dev/block/"+d.num, d.dir)
	d.Link(d.dir+"/bdi", "sys/devices/virtual/bdi/"+d.num)
	d.File("sys/devices/virtual/bdi/"+d.num+"/read_ahead_kb", "128\n")
	d.File("dev/"+d.name, "")
	d.Link("dev/mapper/"+title, "dev/"+d.name)
	links := "S:mapper/" + title + "\n"
	if v != nil && v.visible {
		d.Link("dev/"+v.group+"/"+v.name, "dev/"+d.name)
		links += "S:" + v.group + "/" + v.name + "\n"
	}
	d.Live("run/udev/data/b"+d.num, func() string {
		lines := []string{"E:DM_NAME=" + title, "E:DM_UUID=" + d.mapped.uuid}
		if v != nil {
			lines = append(lines, "E:DM_VG_NAME="+v.group, "E:DM_LV_NAME="+v.name)
		}
		if v == nil || v.visible {
			lines = append(lines, content.UdevFound(d.read)...)
		}
		return links + strings.Join(lines, "\n") + sysfs.UdevEnd
	})
}

// waiting returns the number of requests that wait for hung drives below.
func (d *device) waiting() int {
	if d.drive != nil {
		return d.drive.inflight()
	}
	n := 0
	for _, b := range d.mapped.below {
		n = max(n, b.waiting())
	}
	return n
}

// mappedAs returns the mapped device with the device-mapper name. The caller holds the lock.
func (m *devices) mappedAs(title string) *device {
	for _, d := range m.blocks {
		if d.mapped != nil && d.mapped.title == title {
			return d
		}
	}
	return nil
}
