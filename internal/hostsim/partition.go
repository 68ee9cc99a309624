package hostsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// scan adds the partitions of the drive's table, as the kernel does when it detects a drive.
func (d *drive) scan() {
	if len(d.disks) == 0 {
		return
	}
	per := d.Block / 512
	for _, e := range d.content.Table(d.Size, d.Block) {
		d.addPartition(e.Number, e.First*per, (e.Last-e.First+1)*per)
	}
}

// addPartition adds a partition device; start and size are in sectors.
func (d *drive) addPartition(number int, start, size uint64) *device {
	disk := d.disks[0]
	p := &device{Entries: sysfs.Entries{Tree: d.Tree, Owner: d}, m: d.m, block: d.Block, drive: d, number: number, start: start, sectors: size}
	p.name = disk.name + strconv.Itoa(number)
	if c := disk.name[len(disk.name)-1]; c >= '0' && c <= '9' {
		p.name = disk.name + "p" + strconv.Itoa(number)
	}
	p.num, p.dir, p.data = d.partitionNum(number), disk.dir+"/"+p.name, part{p}
	d.parts = append(d.parts, p)
	slices.SortFunc(d.parts, func(a, b *device) int { return a.number - b.number })
	d.m.blocks[p.name] = p
	d.register(p.name)
	p.show()
	return p
}

// partitionNum returns a device number after the disk's own while there are free ones, then an
// extended one (block/genhd.c, blk_alloc_ext_minor).
func (d *drive) partitionNum(number int) string {
	major, minor, _ := strings.Cut(d.disks[0].num, ":")
	own := 15
	if d.Kind.Name == model.KindNVMe {
		own = maxNVMeParts
	}
	if number > own {
		return fmt.Sprintf("259:%d", 1<<19+256*d.number+number)
	}
	first, _ := strconv.Atoi(minor) // it was printed from a number
	return fmt.Sprintf("%s:%d", major, first+number)
}

// show adds the entries of a partition in sysfs and udev.
func (p *device) show() {
	d := p.drive
	p.Files(p.dir, "alignment_offset", "0\n", "dev", p.num+"\n", "discard_alignment", "0\n", "partition", fmt.Sprintln(p.number))
	p.Live(p.dir+"/start", func() string { return fmt.Sprintln(p.start) })
	p.Live(p.dir+"/size", func() string { return fmt.Sprintln(p.sectors) })
	p.Live(p.dir+"/ro", func() string { return sysfs.Bool(p.refusesWrites()) })
	p.Live(p.dir+"/stat", d.stat)
	p.Live(p.dir+"/inflight", func() string { return fmt.Sprintf("%8d %8d\n", d.inflight(), 0) })
	p.Live(p.dir+"/uevent", func() string {
		text := sysfs.DevUevent(p.num, p.name, "partition") + fmt.Sprintf("PARTN=%d\n", p.number)
		// The kernel has the names of the partitions that it found itself, but not of one that BLKPG
		// added (block/partitions/core.c, bdev_add_partition: no info). With udev it makes no
		// difference: its database has all names.
		if e := p.entry(); e.Name != "" && !(p.told && d.m.Lacks("udev")) {
			text += "PARTNAME=" + e.Name + "\n"
		}
		return text
	})
	p.Folders(p.dir + "/holders")
	p.Link(p.dir+"/subsystem", "sys/class/block")
	p.Link("sys/class/block/"+p.name, p.dir)
	p.Link("sys/dev/block/"+p.num, p.dir)
	p.Live("run/udev/data/b"+p.num, p.udevData)
}

// entry returns the table entry of a partition.
func (p *device) entry() content.Entry { return p.drive.content.Entry(p.number, p.drive.Block) }

func (p *device) udevData() string {
	e := p.entry()
	lines := []string{"S:disk/by-path/" + p.drive.places[0].udevPath + "-part" + strconv.Itoa(p.number), "E:DEVTYPE=partition",
		fmt.Sprintf("E:ID_PART_ENTRY_NUMBER=%d", p.number), fmt.Sprintf("E:ID_PART_ENTRY_OFFSET=%d", p.start), fmt.Sprintf("E:ID_PART_ENTRY_SIZE=%d", p.sectors),
		"E:ID_PART_ENTRY_DISK=" + p.drive.disks[0].num, "E:ID_PART_ENTRY_SCHEME=gpt"}
	if e.Kind != [16]byte{} {
		lines = append(lines, "S:disk/by-partuuid/"+content.GUID(e.ID), "E:ID_PART_ENTRY_UUID="+content.GUID(e.ID), "E:ID_PART_ENTRY_TYPE="+content.GUID(e.Kind))
	}
	if e.Name != "" {
		lines = append(lines, "E:ID_PART_ENTRY_NAME="+e.Name)
	}
	return strings.Join(append(lines, content.UdevFound(p.read)...), "\n") + sysfs.UdevEnd
}

// partition returns the partition with the number.
func (d *drive) partition(number int) *device {
	if i := slices.IndexFunc(d.parts, func(p *device) bool { return p.number == number }); i >= 0 {
		return d.parts[i]
	}
	return nil
}

// overlaps reports whether a range overlaps a partition with another number.
func (d *drive) overlaps(number int, start, size uint64) bool {
	return slices.ContainsFunc(d.parts, func(p *device) bool {
		return p.number != number && start < p.start+p.sectors && p.start < start+size
	})
}

// introduce implements BLKPG_ADD_PARTITION (block/partitions/core.c).
func (d *drive) introduce(number int, start, size uint64) error {
	p := d.partition(number)
	switch {
	case number < 1 || number > content.GptEntries || size == 0 || start+size > d.Size/512:
		return kernel.ErrInvalid
	case p != nil && p.start == start && p.sectors == size:
		return nil
	case p != nil || d.overlaps(number, start, size):
		return host.ErrBusy
	}
	p = d.addPartition(number, start, size)
	p.told = true
	d.m.Uevent("add", "block", p.dir, p.name, map[string]string{"DEVTYPE": "partition"})
	return nil
}

// resize implements BLKPG_RESIZE_PARTITION.
func (d *drive) resize(number int, start, size uint64) error {
	p := d.partition(number)
	switch {
	case p == nil:
		return host.ErrGone
	case p.start != start || size == 0 || start+size > d.Size/512:
		return kernel.ErrInvalid
	case d.overlaps(number, start, size):
		return host.ErrBusy
	case p.sectors != size:
		p.sectors = size
		p.changed()
	}
	return nil
}

// delete implements BLKPG_DEL_PARTITION: an open or claimed partition is busy.
func (d *drive) delete(number int) error {
	p := d.partition(number)
	switch {
	case p == nil:
		return nil
	case p.handles > 0 || p.claimed():
		return host.ErrBusy
	}
	d.parts = slices.DeleteFunc(d.parts, func(x *device) bool { return x == p })
	p.remove()
	d.names = slices.DeleteFunc(d.names, func(n string) bool { return n == p.name })
	delete(d.m.byName, p.name)
	d.m.Uevent("remove", "block", p.dir, p.name, map[string]string{"DEVTYPE": "partition"})
	return nil
}
