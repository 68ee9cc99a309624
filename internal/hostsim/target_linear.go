package hostsim

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// The device-mapper targets of LVM, as backings of mapped devices. A volume's drives and their faults
// follow from the devices below.

// run is a piece of a linear target and its place on the device below. Without a device it is the
// error target of a lost physical volume.
type run struct {
	at, n uint64
	dev   *device
	off   uint64
}

// linear is a sequence of pieces of devices (dm-linear).
type linear struct{ runs []run }

func (l *linear) length() uint64 {
	if len(l.runs) == 0 {
		return 0
	}
	last := l.runs[len(l.runs)-1]
	return last.at + last.n
}

// each calls work for the pieces of a range. An empty range is in all pieces.
func (l *linear) each(off, n uint64, work func(r run, off, at, n uint64) error) error {
	for _, r := range l.runs {
		from, to := max(off, r.at), min(off+n, r.at+r.n)
		if n > 0 && from >= to {
			continue
		}
		if n == 0 {
			from, to = r.at, r.at
		}
		if err := work(r, r.off+from-r.at, from-off, to-from); err != nil {
			return err
		}
	}
	return nil
}

func (l *linear) ask(a access) (drives []*drive, err error) {
	err = l.each(a.off, a.n, func(r run, off, _, n uint64) error {
		if r.dev == nil {
			return kernel.ErrIO
		}
		more, err := r.dev.ask(access{a.write, off, n})
		drives = append(drives, more...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kernel.ErrIO, err)
	}
	return drives, nil
}

func (l *linear) read(p []byte, off uint64) {
	// It cannot fail: ask checked the range.
	_ = l.each(off, uint64(len(p)), func(r run, below, at, n uint64) error {
		if r.dev != nil && n > 0 {
			r.dev.read(p[at:at+n], below)
		}
		return nil
	})
}

func (l *linear) write(p []byte, off uint64) error {
	return l.each(off, uint64(len(p)), func(r run, below, at, n uint64) error {
		if n == 0 {
			return nil
		}
		return r.dev.write(p[at:at+n], below)
	})
}

func (l *linear) zero(off, n uint64) error {
	return l.each(off, n, func(r run, below, _, n uint64) error { return r.dev.zero(below, n) })
}

func (l *linear) discard(off, n uint64) error {
	return l.each(off, n, func(r run, below, _, n uint64) error { return r.dev.discard(below, n) })
}

// flatten returns where a range of a device lies on its drive, up to the end of the contiguous piece.
func (d *device) flatten(off uint64) (on *drive, at, n uint64) {
	switch data := d.data.(type) {
	case *drive:
		return data, off, data.Size - off
	case part:
		return data.drive, data.start*512 + off, data.sectors*512 - off
	case *linear:
		i := slices.IndexFunc(data.runs, func(r run) bool { return off >= r.at && off < r.at+r.n })
		if i >= 0 && data.runs[i].dev != nil {
			r := data.runs[i]
			on, at, n = r.dev.flatten(r.off + off - r.at)
			return on, at, min(n, r.at+r.n-off)
		}
	}
	return nil, 0, 0
}

// copyDevice copies a range from one device to another.
func copyDevice(to *device, toOff uint64, from *device, fromOff, n uint64) {
	for n > 0 {
		a, aAt, aLong := to.flatten(toOff)
		b, bAt, bLong := from.flatten(fromOff)
		if a == nil || b == nil {
			return
		}
		some := min(n, aLong, bLong)
		a.mutate(aAt, some, func() { a.content.Take(aAt, &b.content.Sparse, bAt, some) })
		toOff, fromOff, n = toOff+some, fromOff+some, n-some
	}
}

func (l *linear) written(off, n uint64) (out []uint64) {
	// It cannot fail: the work does not.
	_ = l.each(off, n, func(r run, off, at, n uint64) error {
		if r.dev != nil {
			for _, o := range r.dev.written(off, n) {
				out = append(out, at+o)
			}
		}
		return nil
	})
	return out
}
