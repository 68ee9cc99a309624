package block

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
func (d *Drive) scan() {
	if len(d.Disks) == 0 {
		return
	}
	per := d.Block / 512
	for _, e := range d.Content.Table(d.Size, d.Block) {
		d.addPartition(e.Number, e.First*per, (e.Last-e.First+1)*per)
	}
}

// addPartition adds a partition device; start and size are in sectors.
func (d *Drive) addPartition(number int, start, size uint64) *Device {
	disk := d.Disks[0]
	p := &Device{Entries: sysfs.Entries{Tree: d.Tree, Owner: d}, Devices: d.Devices, block: d.Block, Drive: d, Number: number, start: start, sectors: size}
	p.Name = disk.Name + strconv.Itoa(number)
	if c := disk.Name[len(disk.Name)-1]; c >= '0' && c <= '9' {
		p.Name = disk.Name + "p" + strconv.Itoa(number)
	}
	p.Num, p.Dir, p.Data = d.partitionNum(number), disk.Dir+"/"+p.Name, part{p}
	d.Parts = append(d.Parts, p)
	slices.SortFunc(d.Parts, func(a, b *Device) int { return a.Number - b.Number })
	d.Devices.Blocks[p.Name] = p
	d.register(p.Name)
	p.show()
	return p
}

// partitionNum returns a device number after the disk's own while there are free ones, then an
// extended one (block/genhd.c, blk_alloc_ext_minor). One that is still mounted or open is not given away again, though
// the drive is gone (block/bdev.c, bdev_free_inode).
func (d *Drive) partitionNum(number int) string {
	major, minor, _ := strings.Cut(d.Disks[0].Num, ":")
	own := 15
	if d.Kind.Name == model.KindNVMe {
		own = maxNVMeParts
	}
	if number > own {
		num := func(n int) string { return fmt.Sprintf("259:%d", n) }
		n := 1<<19 + 256*d.number + number
		for d.Devices.haunted(num(n)) {
			n += 1 << 14
		}
		return num(n)
	}
	first, _ := strconv.Atoi(minor) // it was printed from a number
	return fmt.Sprintf("%s:%d", major, first+number)
}

// show adds the entries of a partition in sysfs and udev.
func (p *Device) show() {
	d := p.Drive
	p.Files(p.Dir, "alignment_offset", "0\n", "dev", p.Num+"\n", "discard_alignment", "0\n", "partition", fmt.Sprintln(p.Number))
	p.Live(p.Dir+"/start", func() string { return fmt.Sprintln(p.start) })
	p.Live(p.Dir+"/size", func() string { return fmt.Sprintln(p.sectors) })
	p.Live(p.Dir+"/ro", func() string { return sysfs.Bool(p.RefusesWrites()) })
	p.Live(p.Dir+"/stat", d.stat)
	p.Live(p.Dir+"/inflight", func() string { return fmt.Sprintf("%8d %8d\n", d.inflight(), 0) })
	p.Live(p.Dir+"/uevent", func() string {
		text := sysfs.DevUevent(p.Num, p.Name, "partition") + fmt.Sprintf("PARTN=%d\n", p.Number)
		// The kernel has the names of the partitions that it found itself, but not of one that BLKPG
		// added (block/partitions/core.c, bdev_add_partition: no info). With udev it makes no
		// difference: its database has all names.
		if e := p.entry(); e.Name != "" && !(p.told && d.Devices.Lacks("udev")) {
			text += "PARTNAME=" + e.Name + "\n"
		}
		return text
	})
	p.Folders(p.Dir + "/holders")
	p.Link(p.Dir+"/subsystem", "sys/class/block")
	p.Link("sys/class/block/"+p.Name, p.Dir)
	p.Link("sys/dev/block/"+p.Num, p.Dir)
	p.Live("run/udev/data/b"+p.Num, p.udevData)
}

// entry returns the table entry of a partition.
func (p *Device) entry() content.Entry { return p.Drive.Content.Entry(p.Number, p.Drive.Block) }

func (p *Device) udevData() string {
	e := p.entry()
	lines := []string{"S:disk/by-path/" + p.Drive.Places[0].udevPath + "-part" + strconv.Itoa(p.Number), "E:DEVTYPE=partition",
		fmt.Sprintf("E:ID_PART_ENTRY_NUMBER=%d", p.Number), fmt.Sprintf("E:ID_PART_ENTRY_OFFSET=%d", p.start), fmt.Sprintf("E:ID_PART_ENTRY_SIZE=%d", p.sectors),
		"E:ID_PART_ENTRY_DISK=" + p.Drive.Disks[0].Num, "E:ID_PART_ENTRY_SCHEME=gpt"}
	if e.Kind != [16]byte{} {
		lines = append(lines, "S:disk/by-partuuid/"+content.GUID(e.ID), "E:ID_PART_ENTRY_UUID="+content.GUID(e.ID), "E:ID_PART_ENTRY_TYPE="+content.GUID(e.Kind))
	}
	if e.Name != "" {
		lines = append(lines, "E:ID_PART_ENTRY_NAME="+e.Name)
	}
	return strings.Join(append(lines, content.UdevFound(p.Read)...), "\n") + sysfs.UdevEnd
}

// partition returns the partition with the number.
func (d *Drive) partition(number int) *Device {
	if i := slices.IndexFunc(d.Parts, func(p *Device) bool { return p.Number == number }); i >= 0 {
		return d.Parts[i]
	}
	return nil
}

// overlaps reports whether a range overlaps a partition with another number.
func (d *Drive) overlaps(number int, start, size uint64) bool {
	return slices.ContainsFunc(d.Parts, func(p *Device) bool {
		return p.Number != number && start < p.start+p.sectors && p.start < start+size
	})
}

// introduce implements BLKPG_ADD_PARTITION (block/partitions/core.c).
func (d *Drive) introduce(number int, start, size uint64) error {
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
	d.Devices.Uevent("add", "block", p.Dir, p.Name, map[string]string{"DEVTYPE": "partition"})
	return nil
}

// resize implements BLKPG_RESIZE_PARTITION.
func (d *Drive) resize(number int, start, size uint64) error {
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
		p.Changed()
	}
	return nil
}

// delete implements BLKPG_DEL_PARTITION: an open or claimed partition is busy.
func (d *Drive) delete(number int) error {
	p := d.partition(number)
	switch {
	case p == nil:
		return nil
	case p.Handles > 0 || p.Claimed():
		return host.ErrBusy
	}
	d.Parts = slices.DeleteFunc(d.Parts, func(x *Device) bool { return x == p })
	p.remove()
	d.names = slices.DeleteFunc(d.names, func(n string) bool { return n == p.Name })
	delete(d.Devices.byName, p.Name)
	d.Devices.Uevent("remove", "block", p.Dir, p.Name, map[string]string{"DEVTYPE": "partition"})
	return nil
}
