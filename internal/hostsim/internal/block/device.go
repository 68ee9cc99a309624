package block

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Device is a block device as the kernel has it: a disk (one path to a drive), a partition or a mapped
// device. A removed device does not come back; the next device with its name is another one.
type Device struct {
	sysfs.Entries  // for a disk, owned by the drive
	Devices        *Devices
	Name, Num, Dir string
	block          uint64 // logical
	Data           Backing
	Drive          *Drive // the drive, or the drive that the partition is on; nil for a mapped device
	Number         int    // of a partition
	start, sectors uint64 // of a partition, in sectors of 512 bytes
	Mapped         *Mapped
	Gone, ReadOnly bool
	told           bool // a partition that BLKPG added
	Handles        int  // open handles
	Alone          bool
	Above          []*Device // mapped devices on top of it
	Mounted        bool      // a filesystem on it is mounted
}

// Backing holds the bytes of a device. Callers hold the lock.
type Backing interface {
	// Length returns the size in bytes.
	Length() uint64
	// Ask returns the drives that must answer before the access, or why the access fails.
	Ask(a Access) ([]*Drive, error)
	Read(p []byte, off uint64)
	Write(p []byte, off uint64) error
	Zero(off, n uint64) error
	Discard(off, n uint64) error
	// Written lists the pages of a range that are stored, relative to its start.
	Written(off, n uint64) []uint64
}

// Access is a read or write of a range of a device.
type Access struct {
	Write  bool
	Off, N uint64
}

// Length implements backing.
func (d *Device) Length() uint64 { return d.Data.Length() }

// Ask implements backing.
func (d *Device) Ask(a Access) ([]*Drive, error) {
	switch {
	case d.Gone:
		return nil, fmt.Errorf("%s: %w", d.Name, host.ErrGone)
	case a.Write && d.RefusesWrites(): // EPERM from blkdev_write_iter
		return nil, fmt.Errorf("%s: operation not permitted: %w", d.Name, host.ErrPermission)
	}
	return d.Data.Ask(a)
}

func (d *Device) Read(p []byte, off uint64)        { d.Data.Read(p, off) }
func (d *Device) Write(p []byte, off uint64) error { return d.Data.Write(p, off) }
func (d *Device) Zero(off, n uint64) error         { return d.Data.Zero(off, n) }
func (d *Device) Discard(off, n uint64) error      { return d.Data.Discard(off, n) }

func (d *Device) Written(off, n uint64) []uint64 { return d.Data.Written(off, n) }

// RefusesWrites reports whether the kernel refuses every write: the device, or the drive that the
// partition is on, is read-only.
func (d *Device) RefusesWrites() bool {
	if d.ReadOnly || d.Drive != nil && d.Drive.Faults.ReadOnly {
		return true
	}
	return d.Number > 0 && d.Drive.Present && d.Drive.Disks[0].ReadOnly
}

// Do runs work on a device once the drives below allow it. It waits for a hung drive as the kernel
// does: only healing or pulling the drive ends the wait, not the context.
func (d *Device) Do(ctx context.Context, a Access, work func() error) error {
	for asked := false; ; asked = true {
		d.Devices.Mu.Lock()
		drives, err := d.Ask(a)
		if err == nil && !asked {
			if late := slowest(drives); late != nil {
				d.Devices.Mu.Unlock()
				if err := late.dawdle(ctx); err != nil {
					return err
				}
				continue
			}
		}
		if i := slices.IndexFunc(drives, func(x *Drive) bool { return x.Faults.Hang != nil }); err == nil && i >= 0 {
			hung, released := drives[i], drives[i].Faults.Hang
			hung.held++
			d.Devices.Mu.Unlock()
			<-released
			d.Devices.Mu.Lock()
			hung.held--
			d.Devices.Mu.Unlock()
			continue
		}
		if err == nil {
			for _, x := range drives {
				x.count(a)
			}
			err = work()
		}
		d.Devices.Mu.Unlock()
		return err
	}
}

func slowest(drives []*Drive) *Drive {
	var late *Drive
	for _, d := range drives {
		if d.Faults.Slow > 0 && (late == nil || d.Faults.Slow > late.Faults.Slow) {
			late = d
		}
	}
	return late
}

// count updates the counters of a drive for an access.
func (d *Drive) count(a Access) {
	d.IO.done++
	if d.Asleep {
		d.Asleep = false
		d.Stats.Wakeups++
	}
	if a.Write {
		d.Stats.Writes++
		d.IO.writes++
		d.IO.written += (a.N + 511) / 512
		return
	}
	d.Stats.Reads++
	d.IO.reads++
	d.IO.sectors += (a.N + 511) / 512
}

// Length implements backing.
func (d *Drive) Length() uint64 { return d.Size }

// Ask implements backing.
func (d *Drive) Ask(a Access) ([]*Drive, error) {
	sector, bad := d.unread(a)
	switch {
	case d.Faults.Hang != nil: // no answer, not even an error
	case !d.Present, d.Faults.Offline:
		return nil, fmt.Errorf("%s: %w", d.Name, host.ErrGone)
	case d.Faults.Eio:
		d.IO.Errors++
		return nil, kernel.ErrIO
	case d.Faults.Dead:
		return nil, kernel.ErrIO
	case a.Off+a.N > d.Size: // of a partition that ends beyond the drive (block/blk-core.c, bio_check_eod)
		return nil, kernel.ErrIO
	case bad:
		d.LogMedium(sector)
		return nil, kernel.ErrIO
	}
	return []*Drive{d}, nil
}

func (d *Drive) Read(p []byte, off uint64) { d.Content.Read(p, off) }

func (d *Drive) Write(p []byte, off uint64) error {
	d.mutate(off, uint64(len(p)), func() { d.Content.Write(p, off) })
	d.rewritten(off, uint64(len(p)))
	return nil
}

func (d *Drive) Zero(off, n uint64) error {
	d.mutate(off, n, func() { d.Content.Sparse.Zero(off, n) })
	d.rewritten(off, n)
	return nil
}

// discards reports whether the drive supports discard.
func (d *Drive) discards() bool {
	return d.Kind.RPM == 0 && d.Kind.Name != model.KindVirtio
}

// Discard does nothing on a SATA drive, for which it is a hint (ACS-4, 7.13.3: later reads are
// indeterminate).
func (d *Drive) Discard(off, n uint64) error {
	switch {
	case !d.discards():
		return host.ErrUnsupported
	case d.Family() == host.FamilyATA:
		return nil
	}
	return d.Zero(off, n)
}

func (d *Drive) Written(off, n uint64) (out []uint64) {
	for _, number := range d.Content.In(off, off+n) {
		out = append(out, number*content.PageSize-off)
	}
	return out
}

// part is the backing of a partition.
type part struct{ *Device }

func (p part) Length() uint64 { return p.sectors * 512 }

func (p part) Ask(a Access) ([]*Drive, error) {
	a.Off += p.start * 512
	return p.Drive.Ask(a)
}

func (p part) Read(b []byte, off uint64)        { p.Drive.Read(b, p.start*512+off) }
func (p part) Write(b []byte, off uint64) error { return p.Drive.Write(b, p.start*512+off) }
func (p part) Zero(off, n uint64) error         { return p.Drive.Zero(p.start*512+off, n) }
func (p part) Discard(off, n uint64) error      { return p.Drive.Discard(p.start*512+off, n) }

func (p part) Written(off, n uint64) []uint64 { return p.Drive.Disks[0].Written(p.start*512+off, n) }

// Lookup returns the block device for a node: a kernel name below /dev, a link there, or a path from
// Disk.Path. The caller holds the lock.
func (m *Devices) Lookup(dev string) *Device {
	if d := m.fds.device(dev); d != nil {
		return d
	}
	name, ok := strings.CutPrefix(dev, "/dev/")
	if !ok {
		return nil
	}
	if d := m.Blocks[name]; d != nil {
		return d
	}
	if n, err := m.Tree.Walk("dev/"+name, true); err == nil {
		_, base := sysfs.Split(n.Path)
		return m.Blocks[base]
	}
	return nil
}

// Claimed reports whether the device is held exclusively: by a mount, a mapped device or array above
// it, or a handle.
func (d *Device) Claimed() bool {
	return d.Alone || len(d.Above) > 0 || d.Mounted || d.Devices.booted(d)
}

// Busy reports whether an exclusive open fails: the device, its disk or one of its partitions is
// claimed.
func (d *Device) Busy() bool {
	if d.Claimed() {
		return true
	}
	if d.Drive == nil {
		return false
	}
	if d.Number > 0 {
		return d.Drive.Present && d.Drive.Disks[0].Claimed()
	}
	return slices.ContainsFunc(d.Drive.Parts, (*Device).Claimed)
}

// remove removes a device. Its open handles get errors.
func (d *Device) remove() {
	d.Gone = true
	for _, up := range d.Above {
		up.Mapped.lost(d)
	}
	d.Leave()
	if d.Devices.Blocks[d.Name] == d {
		delete(d.Devices.Blocks, d.Name)
	}
}

// Changed sends a change event for the device.
func (d *Device) Changed() {
	if !d.Gone {
		devtype := "disk"
		if d.Number > 0 {
			devtype = "partition"
		}
		d.Devices.Uevent("change", "block", d.Dir, d.Name, map[string]string{"DEVTYPE": devtype})
	}
}

// ghost is a kernel name that cannot be reused: its devices are gone, and one of them is still open,
// mounted or mapped.
type ghost struct {
	letters string
	index   int
	devices []*Device
}

func (g ghost) haunts() bool { return slices.ContainsFunc(g.devices, (*Device).held) }

func (d *Device) held() bool { return d.Handles > 0 || d.Mounted || len(d.Above) > 0 }

// haunted reports whether a device that is gone still has a device number.
func (m *Devices) haunted(num string) bool {
	return slices.ContainsFunc(m.ghosts, func(g ghost) bool {
		return slices.ContainsFunc(g.devices, func(d *Device) bool { return d.Num == num && d.held() })
	})
}

// Stack returns a drive's devices and all devices mapped onto them.
func (d *Drive) Stack() []*Device {
	list := slices.Concat(d.Disks, d.Parts)
	for _, g := range d.Devices.ghosts { // gone, and still mounted
		for _, x := range g.devices {
			if x.Drive == d && x.Mounted && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	for i := 0; i < len(list); i++ {
		for _, up := range list[i].Above {
			if !slices.Contains(list, up) {
				list = append(list, up)
			}
		}
	}
	return list
}
