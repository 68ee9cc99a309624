package hostsim

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// mirrorOf has the same bytes on each leg (dm-raid, raid1). A failed leg is not used until the table
// is loaded again. Then the superblocks decide.
type mirrorOf struct {
	lv   *lv
	legs []*device
}

func (r *mirrorOf) length() uint64 { return r.lv.size() }

// good reports whether a leg is in use.
func (r *mirrorOf) good(i int) bool { return !r.lv.failed[i] }

func (r *mirrorOf) ask(a access) (drives []*drive, err error) {
	answers := 0
	for i, leg := range r.legs {
		if !r.good(i) {
			continue
		}
		some, err := leg.ask(a)
		if err != nil {
			if r.last(i) { // md keeps the last leg, and returns its errors
				return nil, fmt.Errorf("%w: %w", kernel.ErrIO, err)
			}
			r.fail(i)
			continue
		}
		drives, answers = append(drives, some...), answers+1
		if !a.write {
			break
		}
	}
	if answers == 0 {
		return nil, kernel.ErrIO
	}
	return drives, nil
}

func (r *mirrorOf) last(i int) bool {
	for j := range r.legs {
		if j != i && r.good(j) {
			return false
		}
	}
	return true
}

func (r *mirrorOf) fail(i int) {
	r.lv.failed[i] = true
	r.lv.writeSuperblocks()
	r.lv.group.m.Logf(kernel.LevelErr, "md/raid1:mdX: Disk failure on %s, disabling device.", r.legs[i].name)
}

func (r *mirrorOf) read(p []byte, off uint64) {
	for i, leg := range r.legs {
		if r.good(i) {
			leg.read(p, off)
			return
		}
	}
}

// all runs work on every leg in use.
func (r *mirrorOf) all(work func(*device) error) error {
	for i, leg := range r.legs {
		if r.good(i) {
			if err := work(leg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *mirrorOf) write(p []byte, off uint64) error {
	return r.all(func(leg *device) error { return leg.write(p, off) })
}

func (r *mirrorOf) zero(off, n uint64) error {
	return r.all(func(leg *device) error { return leg.zero(off, n) })
}

func (r *mirrorOf) discard(off, n uint64) error {
	return r.all(func(leg *device) error { return leg.discard(off, n) })
}

func (r *mirrorOf) written(off, n uint64) []uint64 {
	for i, leg := range r.legs {
		if r.good(i) {
			return leg.written(off, n)
		}
	}
	return nil
}
