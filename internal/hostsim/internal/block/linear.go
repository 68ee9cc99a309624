package block

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// The device-mapper targets of LVM, as backings of mapped devices. A volume's drives and their faults
// follow from the devices below.

// Run is a piece of a linear target and its place on the device below. Without a device it is the
// error target of a lost physical volume.
type Run struct {
	At, N uint64
	Dev   *Device
	Off   uint64
}

// Linear is a sequence of pieces of devices (dm-linear).
type Linear struct{ Runs []Run }

func (l *Linear) Length() uint64 {
	if len(l.Runs) == 0 {
		return 0
	}
	last := l.Runs[len(l.Runs)-1]
	return last.At + last.N
}

// each calls work for the pieces of a range. An empty range is in all pieces.
func (l *Linear) each(off, n uint64, work func(r Run, off, at, n uint64) error) error {
	for _, r := range l.Runs {
		from, to := max(off, r.At), min(off+n, r.At+r.N)
		if n > 0 && from >= to {
			continue
		}
		if n == 0 {
			from, to = r.At, r.At
		}
		if err := work(r, r.Off+from-r.At, from-off, to-from); err != nil {
			return err
		}
	}
	return nil
}

func (l *Linear) Ask(a Access) (drives []*Drive, err error) {
	err = l.each(a.Off, a.N, func(r Run, off, _, n uint64) error {
		if r.Dev == nil {
			return kernel.ErrIO
		}
		more, err := r.Dev.Ask(Access{a.Write, off, n})
		drives = append(drives, more...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kernel.ErrIO, err)
	}
	return drives, nil
}

func (l *Linear) Read(p []byte, off uint64) {
	// It cannot fail: ask checked the range.
	_ = l.each(off, uint64(len(p)), func(r Run, below, at, n uint64) error {
		if r.Dev != nil && n > 0 {
			r.Dev.Read(p[at:at+n], below)
		}
		return nil
	})
}

func (l *Linear) Write(p []byte, off uint64) error {
	return l.each(off, uint64(len(p)), func(r Run, below, at, n uint64) error {
		if n == 0 {
			return nil
		}
		return r.Dev.Write(p[at:at+n], below)
	})
}

func (l *Linear) Zero(off, n uint64) error {
	return l.each(off, n, func(r Run, below, _, n uint64) error { return r.Dev.Zero(below, n) })
}

func (l *Linear) Discard(off, n uint64) error {
	return l.each(off, n, func(r Run, below, _, n uint64) error { return r.Dev.Discard(below, n) })
}

// flatten returns where a range of a device lies on its drive, up to the end of the contiguous piece.
func (d *Device) flatten(off uint64) (on *Drive, at, n uint64) {
	switch data := d.Data.(type) {
	case *Drive:
		return data, off, data.Size - off
	case part:
		return data.Drive, data.start*512 + off, data.sectors*512 - off
	case *Linear:
		i := slices.IndexFunc(data.Runs, func(r Run) bool { return off >= r.At && off < r.At+r.N })
		if i >= 0 && data.Runs[i].Dev != nil {
			r := data.Runs[i]
			on, at, n = r.Dev.flatten(r.Off + off - r.At)
			return on, at, min(n, r.At+r.N-off)
		}
	}
	return nil, 0, 0
}

// CopyDevice copies a range from one device to another.
func CopyDevice(to *Device, toOff uint64, from *Device, fromOff, n uint64) {
	for n > 0 {
		a, aAt, aLong := to.flatten(toOff)
		b, bAt, bLong := from.flatten(fromOff)
		if a == nil || b == nil {
			return
		}
		some := min(n, aLong, bLong)
		a.mutate(aAt, some, func() { a.Content.Take(aAt, &b.Content.Sparse, bAt, some) })
		toOff, fromOff, n = toOff+some, fromOff+some, n-some
	}
}

func (l *Linear) Written(off, n uint64) (out []uint64) {
	// It cannot fail: the work does not.
	_ = l.each(off, n, func(r Run, off, at, n uint64) error {
		if r.Dev != nil {
			for _, o := range r.Dev.Written(off, n) {
				out = append(out, at+o)
			}
		}
		return nil
	})
	return out
}
