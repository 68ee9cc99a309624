package lvm

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// mirrorOf has the same bytes on each leg (dm-raid, raid1). A failed leg is not used until the table
// is loaded again. Then the superblocks decide.
type mirrorOf struct {
	lv   *lv
	legs []*block.Device
}

func (r *mirrorOf) Length() uint64 { return r.lv.size() }

// good reports whether a leg is in use.
func (r *mirrorOf) good(i int) bool { return !r.lv.failed[i] }

func (r *mirrorOf) Ask(a block.Access) (drives []*block.Drive, err error) {
	answers := 0
	for i, leg := range r.legs {
		if !r.good(i) {
			continue
		}
		some, err := leg.Ask(a)
		if err != nil {
			if r.last(i) { // md keeps the last leg, and returns its errors
				return nil, fmt.Errorf("%w: %w", kernel.ErrIO, err)
			}
			r.fail(i)
			continue
		}
		drives, answers = append(drives, some...), answers+1
		if !a.Write {
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
	r.lv.group.m.Logf(kernel.LevelErr, "md/raid1:mdX: Disk failure on %s, disabling device.", r.legs[i].Name)
}

func (r *mirrorOf) Read(p []byte, off uint64) {
	for i, leg := range r.legs {
		if r.good(i) {
			leg.Read(p, off)
			return
		}
	}
}

// all runs work on every leg in use.
func (r *mirrorOf) all(work func(*block.Device) error) error {
	for i, leg := range r.legs {
		if r.good(i) {
			if err := work(leg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *mirrorOf) Write(p []byte, off uint64) error {
	return r.all(func(leg *block.Device) error { return leg.Write(p, off) })
}

func (r *mirrorOf) Zero(off, n uint64) error {
	return r.all(func(leg *block.Device) error { return leg.Zero(off, n) })
}

func (r *mirrorOf) Discard(off, n uint64) error {
	return r.all(func(leg *block.Device) error { return leg.Discard(off, n) })
}

func (r *mirrorOf) Written(off, n uint64) []uint64 {
	for i, leg := range r.legs {
		if r.good(i) {
			return leg.Written(off, n)
		}
	}
	return nil
}
