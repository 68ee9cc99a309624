package hostsim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
)

// device is a block device as the kernel has it: a path to a drive, a partition,
// a mapped device. One that went does not come back; what takes its name later
// is another.
type device struct {
	entries        // a drive's own are the drive's
	name, num, dir string
	block          uint64 // logical
	data           backing
	drive          *drive // it is, or is a partition of; nil for a mapped device
	number         int    // of a partition
	start, sectors uint64 // of a partition, in sectors of 512 bytes
	mapped         *mapped
	gone, readOnly bool
	told           bool // a partition that BLKPG has added
	handles        int  // open
	alone          bool
	above          []*device // mapped devices that hold it
	fs             *filesystem
}

// backing is what keeps the bytes of a device. Callers hold the lock.
type backing interface {
	// size is in bytes.
	length() uint64
	// ask says which drives must answer before an access can be done, or why it
	// cannot be done.
	ask(a access) ([]*drive, error)
	read(p []byte, off uint64)
	write(p []byte, off uint64) error
	zero(off, n uint64) error
	discard(off, n uint64) error
}

// access is what is done to a range of a device.
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
	case a.write && d.refusesWrites(): // EPERM of blkdev_write_iter
		return nil, fmt.Errorf("%s: operation not permitted: %w", d.name, host.ErrPermission)
	}
	return d.data.ask(a)
}

func (d *device) read(p []byte, off uint64)        { d.data.read(p, off) }
func (d *device) write(p []byte, off uint64) error { return d.data.write(p, off) }
func (d *device) zero(off, n uint64) error         { return d.data.zero(off, n) }
func (d *device) discard(off, n uint64) error      { return d.data.discard(off, n) }

// refusesWrites says that the kernel lets nobody write: the device, or the drive
// that it is a partition of, is read-only.
func (d *device) refusesWrites() bool {
	if d.readOnly || d.drive != nil && d.drive.faults.readOnly {
		return true
	}
	return d.number > 0 && d.drive.present && d.drive.disks[0].readOnly
}

// do does work on a device when the drives below let it. A drive that hangs is
// waited for as the kernel does: only healing or pulling it ends that, no context.
func (d *device) do(ctx context.Context, a access, work func() error) error {
	for asked := false; ; asked = true {
		d.m.mu.Lock()
		drives, err := d.ask(a)
		if err == nil && !asked {
			if late := slowest(drives); late != nil {
				d.m.mu.Unlock()
				if err := late.dawdle(ctx); err != nil {
					return err
				}
				continue
			}
		}
		if i := slices.IndexFunc(drives, func(x *drive) bool { return x.faults.hang != nil }); err == nil && i >= 0 {
			hung, released := drives[i], drives[i].faults.hang
			hung.held++
			d.m.mu.Unlock()
			<-released
			d.m.mu.Lock()
			hung.held--
			d.m.mu.Unlock()
			continue
		}
		if err == nil {
			for _, x := range drives {
				x.count(a)
			}
			err = work()
		}
		d.m.mu.Unlock()
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

// count keeps the books of a drive for an access.
func (d *drive) count(a access) {
	d.io.done++
	if d.asleep {
		d.asleep = false
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
func (d *drive) length() uint64 { return d.size }

// ask implements backing.
func (d *drive) ask(a access) ([]*drive, error) {
	sector, bad := d.unread(a)
	switch {
	case d.faults.hang != nil: // it says nothing at all, not even that it fails
	case !d.present, d.faults.offline:
		return nil, fmt.Errorf("%s: %w", d.name, host.ErrGone)
	case d.faults.eio:
		d.io.errors++
		return nil, errIO
	case d.faults.dead:
		return nil, errIO
	case a.off+a.n > d.size: // of a partition that ends beyond the drive (block/blk-core.c, bio_check_eod)
		return nil, errIO
	case bad:
		d.logMedium(sector)
		return nil, errIO
	}
	return []*drive{d}, nil
}

func (d *drive) read(p []byte, off uint64) { d.content.read(p, off) }

func (d *drive) write(p []byte, off uint64) error {
	d.mutate(off, uint64(len(p)), func() { d.content.write(p, off) })
	d.rewritten(off, uint64(len(p)))
	return nil
}

func (d *drive) zero(off, n uint64) error {
	d.mutate(off, n, func() { d.content.sparse.zero(off, n) })
	d.rewritten(off, n)
	return nil
}

// discards says whether the drive takes that a range is not needed any more.
func (d *drive) discards() bool {
	return d.kind.rpm == 0 && d.kind.name != KindVirtio
}

// discard of a SATA drive is a hint that it does not act upon (ACS-4, 7.13.3:
// what is read then is not determined).
func (d *drive) discard(off, n uint64) error {
	switch {
	case !d.discards():
		return host.ErrUnsupported
	case d.family() == familyATA:
		return nil
	}
	return d.zero(off, n)
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

// lookup finds a block device by its node: a kernel name below /dev, a link
// there, or what Disk.Path said. The caller holds the lock.
func (m *Machine) lookup(dev string) *device {
	if d := m.fds.device(dev); d != nil {
		return d
	}
	name, ok := strings.CutPrefix(dev, "/dev/")
	if !ok {
		return nil
	}
	if d := m.devices[name]; d != nil {
		return d
	}
	if n, err := m.tree.walk("dev/"+name, true); err == nil {
		_, base := split(n.path)
		return m.devices[base]
	}
	return nil
}

// claimed says that somebody has the device for himself: a mount, a mapped
// device or array above it, or a handle.
func (d *device) claimed() bool {
	return d.alone || len(d.above) > 0 || d.fs != nil || d.m.booted(d)
}

// busy says that it cannot be had alone: it is claimed, or what it is a part of
// is, or a part of it.
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

// remove makes a device go; whoever has it open gets errors.
func (d *device) remove() {
	d.gone = true
	for _, up := range d.above {
		up.mapped.lost(d)
	}
	d.leave()
	if d.m.devices[d.name] == d {
		delete(d.m.devices, d.name)
	}
}

// changed tells that something about the device is different now.
func (d *device) changed() {
	if !d.gone {
		devtype := "disk"
		if d.number > 0 {
			devtype = "partition"
		}
		d.m.uevent("change", "block", d.dir, d.name, map[string]string{"DEVTYPE": devtype})
	}
}

// ghost is a kernel name that is not given out again: its devices are gone, and
// yet somebody has one of them open or mounted.
type ghost struct {
	letters string
	index   int
	devices []*device
}

func (g ghost) haunts() bool {
	return slices.ContainsFunc(g.devices, func(d *device) bool { return d.handles > 0 || d.fs != nil || len(d.above) > 0 })
}
