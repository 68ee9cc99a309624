package block

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// queueFiles are the attributes of a request queue with the values of an ordinary drive. buildQueue
// replaces those that depend on the drive.
var queueFiles = []string{
	"add_random", "0", "chunk_sectors", "0", "dax", "0", "discard_granularity", "512", "discard_max_bytes", "0", "discard_max_hw_bytes", "0",
	"discard_zeroes_data", "0", "dma_alignment", "511", "fua", "0", "io_poll", "0", "io_poll_delay", "-1", "io_timeout", "30000", "iostats", "1",
	"max_discard_segments", "1", "max_hw_sectors_kb", "16383", "max_integrity_segments", "0", "max_sectors_kb", "1280", "max_segment_size", "65536",
	"max_segments", "128", "minimum_io_size", "512", "nomerges", "0", "nr_requests", "256", "nr_zones", "0", "optimal_io_size", "0", "read_ahead_kb", "128",
	"rq_affinity", "1", "scheduler", "[mq-deadline] none", "stable_writes", "0", "virt_boundary_mask", "0", "wbt_lat_usec", "75000", "write_cache", "write back",
	"write_same_max_bytes", "0", "write_zeroes_max_bytes", "0", "zone_append_max_bytes", "0", "zone_write_granularity", "0", "zoned", "none",
}

// blockDevice holds what buildBlock needs of a block device.
type blockDevice struct {
	dir, name, dev string
	device         string // target folder of the link "device"
	hidden         bool   // a path behind an NVMe head, without a device number
	partScan       int    // ext_range
}

// buildBlock adds the folder of a block device and the links to it.
func buildBlock(d *Drive, b blockDevice) {
	seq := d.Devices.NextSeq()
	uevent := fmt.Sprintf("DEVTYPE=disk\nDISKSEQ=%d\n", seq)
	if !b.hidden {
		uevent = sysfs.DevUevent(b.dev, b.name, "disk") + fmt.Sprintf("DISKSEQ=%d\n", seq)
		d.File(b.dir+"/dev", b.dev+"\n")
		d.Link("sys/dev/block/"+b.dev, b.dir)
		d.Link(b.dir+"/bdi", "sys/devices/virtual/bdi/"+b.dev)
		d.File("sys/devices/virtual/bdi/"+b.dev+"/read_ahead_kb", "128\n")
		d.Tree.Keep("sys/devices/virtual/bdi")
	}
	d.Files(b.dir, "alignment_offset", "0\n", "capability", "0\n", "discard_alignment", "0\n", "diskseq", fmt.Sprintln(seq), "events", "", "events_async", "",
		"events_poll_msecs", "-1\n", "ext_range", fmt.Sprintln(b.partScan), "hidden", sysfs.Bool(b.hidden), "range", "16\n", "removable", "0\n", "uevent", uevent)
	ro := func() bool { return d.Faults.ReadOnly }
	if !b.hidden {
		disk := &Device{Entries: sysfs.Entries{Tree: d.Tree, Owner: d}, Devices: d.Devices, Name: b.name, Num: b.dev, Dir: b.dir, block: d.Block, Data: d, Drive: d}
		d.Disks = append(d.Disks, disk)
		d.Devices.Blocks[b.name] = disk
		ro = disk.RefusesWrites
	}
	d.Live(b.dir+"/ro", func() string { return sysfs.Bool(ro()) })
	d.Live(b.dir+"/size", func() string { return fmt.Sprintln(d.sectors()) })
	d.Live(b.dir+"/stat", d.stat)
	d.Live(b.dir+"/inflight", func() string { return fmt.Sprintf("%8d %8d\n", d.inflight(), 0) })
	buildQueue(d, b.dir+"/queue/")
	d.Link(b.dir+"/device", b.device)
	d.Link(b.dir+"/subsystem", "sys/class/block")
	d.Link("sys/block/"+b.name, b.dir)
	d.Link("sys/class/block/"+b.name, b.dir)
	d.Folders(b.dir+"/holders", b.dir+"/slaves")
}

func buildQueue(d *Drive, dir string) {
	for i := 0; i+1 < len(queueFiles); i += 2 {
		d.File(dir+queueFiles[i], queueFiles[i+1]+"\n")
	}
	physical := d.Block
	if d.Kind.Rotational {
		physical = 4096
	}
	d.File(dir+"logical_block_size", fmt.Sprintln(d.Block))
	d.File(dir+"hw_sector_size", fmt.Sprintln(d.Block))
	d.File(dir+"physical_block_size", fmt.Sprintln(physical))
	d.File(dir+"rotational", sysfs.Bool(d.Kind.Rotational))
	if d.discards() {
		d.File(dir+"discard_granularity", fmt.Sprintln(physical))
		d.File(dir+"discard_max_bytes", "2199023255040\n")
		d.File(dir+"discard_max_hw_bytes", "2199023255040\n")
	}
	if d.Kind.Name == model.KindNVMe {
		d.File(dir+"scheduler", "[none] mq-deadline \n")
	}
}

// sectors returns the size of the drive in the kernel. A dead NVMe drive has size 0
// (nvme_mark_namespaces_dead).
func (d *Drive) sectors() uint64 {
	if d.Faults.Dead {
		return 0
	}
	return d.Size / 512
}

// stat returns the line of Documentation/block/stat.rst.
func (d *Drive) stat() string {
	f := []uint64{d.IO.reads, 0, d.IO.sectors, d.IO.reads * 2, d.IO.writes, 0, d.IO.written, d.IO.writes * 2, uint64(d.inflight()), d.IO.reads * 2, d.IO.reads * 2, 0, 0, 0, 0, 0, 0}
	b := make([]byte, 0, 9*len(f))
	for i, n := range f {
		if i > 0 {
			b = append(b, ' ')
		}
		var digits [20]byte
		text := strconv.AppendUint(digits[:0], n, 10)
		for range 8 - len(text) {
			b = append(b, ' ')
		}
		b = append(b, text...)
	}
	return string(append(b, '\n'))
}

// addUdev adds an entry of the udev database (systemd, sd-device: S links, E properties, I microseconds
// of initialization).
func addUdev(d *Drive, dev string, lines ...string) {
	d.Live("run/udev/data/b"+dev, func() string {
		return strings.Join(append(slices.Clip(lines), content.UdevFound(d.Content.Read)...), "\n") + sysfs.UdevEnd
	})
}
