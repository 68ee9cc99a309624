package block

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/pages"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Drive is one simulated drive, in the machine or pulled out. The machine's lock guards it.
type Drive struct {
	sysfs.Entries
	Devices *Devices
	pages.State
	number  int // in the order of the description, from 0
	System  bool
	Content content.Bytes

	Bay     *Bay // nil: inside the case
	Present bool
	letGone map[int]bool // paths that the kernel was ordered to remove
	Name    string       // "sda", "nvme0n1"
	names   []string
	index   int // of the kernel name
	Places  []place
	Disks   []*Device // by path
	Parts   []*Device

	Faults Faults
	Born   struct {
		model.Identity
		Size uint64
		Age  model.Counters
	}
	held   int // commands that wait while it hangs
	IO     ioCounters
	turn   uint64 // grows with each plug; handles of an older turn are dead
	Stats  DriveStats
	blinks atomic.Uint32 // reads of its entries while they flicker
}

// place is the location of one path of a drive in the machine.
type place struct {
	device   string // folder of the SCSI device, the NVMe controller or the virtio device
	block    string // folder of the block device
	Hctl     string // "0:0:7:0"; SCSI only
	pci      string // PCI address of the drive or of its controller
	udevPath string // ID_PATH of the udev database
	Ctrl     string // "nvme0"; NVMe only
	dev      string // "8:16"
}

// ioCounters are the kernel's request counters.
type ioCounters struct {
	done, Errors, Timeouts uint64 // of the SCSI layer, passed-through commands included
	reads, sectors         uint64
	writes, written        uint64 // written: sectors
}

// NewDrive returns a drive of a group.
func (m *Devices) NewDrive(g *Group, k *model.Properties, b *Bay) (*Drive, error) {
	d := &Drive{Entries: sysfs.Entries{Tree: m.Tree}, Devices: m, State: pages.State{Kind: k, Paths: max(g.Paths, 1), Clock: m.Clock}, number: len(m.Drives), Bay: b, System: g.System}
	d.Owner = d
	d.Identity = model.Identity{Vendor: cmp.Or(g.Vendor, k.Vendor), Model: cmp.Or(g.Model, k.Model)}
	d.Firmware = cmp.Or(g.Firmware, k.Firmware)
	d.Serial = strings.ReplaceAll(cmp.Or(g.Serial, model.DefaultSerial(k)), "{n}", fmt.Sprintf("%04d", d.number+1))
	d.WWN = model.WWN(k, d.Model+d.Serial)
	if d.Paths > k.MaxPaths {
		return nil, fmt.Errorf("%d paths: a %s drive has at most %d", d.Paths, k.Name, k.MaxPaths)
	}
	switch d.Block = uint64(g.Block); d.Block {
	case 0:
		d.Block = 512
	case 512, 4096:
	default:
		return nil, fmt.Errorf("block %d: want 512 or 4096", g.Block)
	}
	size, err := model.ParseSize(cmp.Or(g.Size, k.Size))
	if err != nil {
		return nil, err
	}
	if d.Size = size &^ (1<<20 - 1); d.Size < 64<<20 { // whole MiB, close enough to real sizes
		return nil, fmt.Errorf("size %s: want at least 64MiB", g.Size)
	}
	if d.Age, err = model.NewCounters(g.Age); err != nil {
		return nil, err
	}
	if d.Content, err = content.New(cmp.Or(g.Content, "blank"), d.Size, d.Block); err != nil {
		return nil, err
	}
	if d.System {
		d.Content.Put(content.GPT(d.Size, d.Block, content.SystemTable(d.Size, d.Block)...))
	}
	if d.LongTest = g.LongTest; d.LongTest == 0 {
		d.LongTest = map[bool]time.Duration{true: 24 * time.Hour, false: 30 * time.Minute}[k.RPM > 0]
	}
	d.Age.Born = m.Clock.Now()
	d.IO = ioCounters{done: 0x22d + d.Age.Reallocated, Errors: 0x2, reads: 91, sectors: 3208}
	d.Born.Identity, d.Born.Age, d.Born.Size = d.Identity, d.Age, d.Size
	return d, nil
}

// plug adds the drive to the kernel. With rename the drive gets a kernel name that was never used.
func (d *Drive) plug(rename bool) {
	d.index = d.Devices.freeIndex(d.Kind.Letters, d.Paths, rename)
	d.Present = true
	d.turn++
	d.names, d.Places, d.Parts, d.Disks = nil, nil, nil, nil
	for path := range d.Paths {
		d.Places = append(d.Places, builders[d.Kind.Name].place(d, path))
	}
	builders[d.Kind.Name].build(d)
	d.scan()
	if d.Bay != nil {
		d.Bay.Drive = d
		d.Bay.connect(d)
	}
	if d.System {
		d.Devices.refreshSystem()
	}
}

// unplug removes the drive's entries. Hung commands return: the kernel fails the requests of a removed
// device.
func (d *Drive) unplug() {
	all := slices.Concat(d.Parts, d.Disks)
	for _, p := range all {
		p.remove()
	}
	for path := range d.Paths {
		d.Devices.ghosts = append(d.Devices.ghosts, ghost{d.Kind.Letters, d.index + path, all})
	}
	d.Leave()
	for _, n := range append([]string{d.Name}, d.names...) {
		delete(d.Devices.byName, n)
	}
	d.Present = false
	d.Release()
	if d.Bay != nil {
		d.Bay.Drive = nil
	}
	if d.System {
		d.Devices.refreshSystem()
	}
}

// register maps a kernel name to the drive.
func (d *Drive) register(name string) {
	d.names = append(d.names, name)
	d.Devices.byName[name] = d
}

// Flickers reports whether this read happens while the entry is missing.
func (d *Drive) Flickers() bool { return d.Faults.Flicker && d.blinks.Add(1)%3 == 0 }

// inflight returns the number of requests that hang: two of other programs, and the daemon's.
func (d *Drive) inflight() int {
	if d.Faults.Hang == nil {
		return 0
	}
	return 2 + d.held
}

// Label names the drive for people: its bay, else its kernel name or serial number.
func (d *Drive) Label() string {
	switch {
	case d.Bay != nil:
		return fmt.Sprint(d.Bay.Number)
	case d.Present:
		return d.Name
	}
	return d.Serial
}
