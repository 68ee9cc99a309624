package hostsim

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

// device is a block device as the kernel has it: a disk (one path to a drive), a partition or a mapped
// device. A removed device does not come back; the next device with its name is another one.
type device struct {
	sysfs.Entries  // for a disk, owned by the drive
	m              *devices
	name, num, dir string
	block          uint64 // logical
	data           backing
	drive          *drive // the drive, or the drive that the partition is on; nil for a mapped device
	number         int    // of a partition
	start, sectors uint64 // of a partition, in sectors of 512 bytes
	mapped         *mapped
	gone, readOnly bool
	told           bool // a partition that BLKPG added
	handles        int  // open handles
	alone          bool
	above          []*device // mapped devices on top of it
	mounted        bool      // a filesystem on it is mounted
}

// backing holds the bytes of a device. Callers hold the lock.
type backing interface {
	// length returns the size in bytes.
	length() uint64
	// ask returns the drives that must answer before the access, or why the access fails.
	ask(a access) ([]*drive, error)
	read(p []byte, off uint64)
	write(p []byte, off uint64) error
	zero(off, n uint64) error
	discard(off, n uint64) error
	// written lists the pages of a range that are stored, relative to its start.
	written(off, n uint64) []uint64
}

// access is a read or write of a range of a device.
type access struct {
	write  bool
	off, n uint64
}

// length implements backing.
func (d *device) length() uint64 { return d.data.length() }

// ask implements backing.
func (d *device) ask(a access) ([]*drive, error) {
	switch {
	case d.gone:
		return nil, fmt.Errorf("%s: %w", d.name, host.ErrGone)
	case a.write && d.refusesWrites(): // EPERM from blkdev_write_iter
		return nil, fmt.Errorf("%s: operation not permitted: %w", d.name, host.ErrPermission)
	}
	return d.data.ask(a)
}

func (d *device) read(p []byte, off uint64)        { d.data.read(p, off) }
func (d *device) write(p []byte, off uint64) error { return d.data.write(p, off) }
func (d *device) zero(off, n uint64) error         { return d.data.zero(off, n) }
func (d *device) discard(off, n uint64) error      { return d.data.discard(off, n) }

func (d *device) written(off, n uint64) []uint64 { return d.data.written(off, n) }

// refusesWrites reports whether the kernel refuses every write: the device, or the drive that the
// partition is on, is read-only.
func (d *device) refusesWrites() bool {
	if d.readOnly || d.drive != nil && d.drive.faults.readOnly {
		return true
	}
	return d.number > 0 && d.drive.present && d.drive.disks[0].readOnly
}

// do runs work on a device once the drives below allow it. It waits for a hung drive as the kernel
// does: only healing or pulling the drive ends the wait, not the context.
func (d *device) do(ctx context.Context, a access, work func() error) error {
	for asked := false; ; asked = true {
		d.m.Mu.Lock()
		drives, err := d.ask(a)
		if err == nil && !asked {
			if late := slowest(drives); late != nil {
				d.m.Mu.Unlock()
				if err := late.dawdle(ctx); err != nil {
					return err
				}
				continue
			}
		}
		if i := slices.IndexFunc(drives, func(x *drive) bool { return x.faults.hang != nil }); err == nil && i >= 0 {
			hung, released := drives[i], drives[i].faults.hang
			hung.held++
			d.m.Mu.Unlock()
			<-released
			d.m.Mu.Lock()
			hung.held--
			d.m.Mu.Unlock()
			continue
		}
		if err == nil {
			for _, x := range drives {
				x.count(a)
			}
			err = work()
		}
		d.m.Mu.Unlock()
		return err
	}
}

func slowest(drives []*drive) *drive {
	var late *drive
	for _, d := range drives {
		if d.faults.slow > 0 && (late == nil || d.faults.slow > late.faults.slow) {
			late = d
		}
	}
	return late
}

// count updates the counters of a drive for an access.
func (d *drive) count(a access) {
	d.io.done++
	if d.Asleep {
		d.Asleep = false
		d.stats.Wakeups++
	}
	if a.write {
		d.stats.Writes++
		d.io.writes++
		d.io.written += (a.n + 511) / 512
		return
	}
	d.stats.Reads++
	d.io.reads++
	d.io.sectors += (a.n + 511) / 512
}

// length implements backing.
func (d *drive) length() uint64 { return d.Size }

// ask implements backing.
func (d *drive) ask(a access) ([]*drive, error) {
	sector, bad := d.unread(a)
	switch {
	case d.faults.hang != nil: // no answer, not even an error
	case !d.present, d.faults.offline:
		return nil, fmt.Errorf("%s: %w", d.name, host.ErrGone)
	case d.faults.eio:
		d.io.errors++
		return nil, kernel.ErrIO
	case d.faults.dead:
		return nil, kernel.ErrIO
	case a.off+a.n > d.Size: // of a partition that ends beyond the drive (block/blk-core.c, bio_check_eod)
		return nil, kernel.ErrIO
	case bad:
		d.logMedium(sector)
		return nil, kernel.ErrIO
	}
	return []*drive{d}, nil
}

func (d *drive) read(p []byte, off uint64) { d.content.Read(p, off) }

func (d *drive) write(p []byte, off uint64) error {
	d.mutate(off, uint64(len(p)), func() { d.content.Write(p, off) })
	d.rewritten(off, uint64(len(p)))
	return nil
}

func (d *drive) zero(off, n uint64) error {
	d.mutate(off, n, func() { d.content.Sparse.Zero(off, n) })
	d.rewritten(off, n)
	return nil
}

// discards reports whether the drive supports discard.
func (d *drive) discards() bool {
	return d.Kind.RPM == 0 && d.Kind.Name != model.KindVirtio
}

// discard does nothing on a SATA drive, for which it is a hint (ACS-4, 7.13.3: later reads are
// indeterminate).
func (d *drive) discard(off, n uint64) error {
	switch {
	case !d.discards():
		return host.ErrUnsupported
	case d.Family() == host.FamilyATA:
		return nil
	}
	return d.zero(off, n)
}

func (d *drive) written(off, n uint64) (out []uint64) {
	for _, number := range d.content.In(off, off+n) {
		out = append(out, number*content.PageSize-off)
	}
	return out
}

// part is the backing of a partition.
type part struct{ *device }

func (p part) length() uint64 { return p.sectors * 512 }

func (p part) ask(a access) ([]*drive, error) {
	a.off += p.start * 512
	return p.drive.ask(a)
}

func (p part) read(b []byte, off uint64)        { p.drive.read(b, p.start*512+off) }
func (p part) write(b []byte, off uint64) error { return p.drive.write(b, p.start*512+off) }
func (p part) zero(off, n uint64) error         { return p.drive.zero(p.start*512+off, n) }
func (p part) discard(off, n uint64) error      { return p.drive.discard(p.start*512+off, n) }

func (p part) written(off, n uint64) []uint64 { return p.drive.disks[0].written(p.start*512+off, n) }

// lookup returns the block device for a node: a kernel name below /dev, a link there, or a path from
// Disk.Path. The caller holds the lock.
func (m *devices) lookup(dev string) *device {
	if d := m.fds.device(dev); d != nil {
		return d
	}
	name, ok := strings.CutPrefix(dev, "/dev/")
	if !ok {
		return nil
	}
	if d := m.blocks[name]; d != nil {
		return d
	}
	if n, err := m.Tree.Walk("dev/"+name, true); err == nil {
		_, base := sysfs.Split(n.Path)
		return m.blocks[base]
	}
	return nil
}

// claimed reports whether the device is held exclusively: by a mount, a mapped device or array above
// it, or a handle.
func (d *device) claimed() bool {
	return d.alone || len(d.above) > 0 || d.mounted || d.m.booted(d)
}

// busy reports whether an exclusive open fails: the device, its disk or one of its partitions is
// claimed.
func (d *device) busy() bool {
	if d.claimed() {
		return true
	}
	if d.drive == nil {
		return false
	}
	if d.number > 0 {
		return d.drive.present && d.drive.disks[0].claimed()
	}
	return slices.ContainsFunc(d.drive.parts, (*device).claimed)
}

// remove removes a device. Its open handles get errors.
func (d *device) remove() {
	d.gone = true
	for _, up := range d.above {
		up.mapped.lost(d)
	}
	d.Leave()
	if d.m.blocks[d.name] == d {
		delete(d.m.blocks, d.name)
	}
}

// changed sends a change event for the device.
func (d *device) changed() {
	if !d.gone {
		devtype := "disk"
		if d.number > 0 {
			devtype = "partition"
		}
		d.m.Uevent("change", "block", d.dir, d.name, map[string]string{"DEVTYPE": devtype})
	}
}

// ghost is a kernel name that cannot be reused: its devices are gone, and one of them is still open,
// mounted or mapped.
type ghost struct {
	letters string
	index   int
	devices []*device
}

func (g ghost) haunts() bool {
	return slices.ContainsFunc(g.devices, func(d *device) bool { return d.handles > 0 || d.mounted || len(d.above) > 0 })
}

// stack returns a drive's devices and all devices mapped onto them.
func (d *drive) stack() []*device {
	list := slices.Concat(d.disks, d.parts)
	for _, g := range d.m.ghosts { // gone, and still mounted
		for _, x := range g.devices {
			if x.drive == d && x.mounted && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	for i := 0; i < len(list); i++ {
		for _, up := range list[i].above {
			if !slices.Contains(list, up) {
				list = append(list, up)
			}
		}
	}
	return list
}
