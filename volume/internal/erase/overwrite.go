package erase

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// Piece is how much is zeroed or discarded in one call, and milestone how often the progress is
// recorded: a large hard disk takes a day.
const (
	Piece     = partitions.GiB
	Milestone = 16 * Piece
)

const UpTo = " up to "

// Reached returns how far a step of a volume had come when that was last recorded.
func (e *Eraser) Reached(id, name string) uint64 {
	r, err := e.Ledger.Record(id)
	if err != nil || r.Work == nil {
		return 0
	}
	for _, m := range r.Work.Made {
		if text, ok := strings.CutPrefix(m, name+UpTo); ok {
			n, _ := strconv.ParseUint(text, 10, 64) // 0, the start, if it is not a number
			return n
		}
	}
	return 0
}

// Reach records how far the wipe of a step has come.
func (e *Eraser) Reach(id, name string, at uint64) error {
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if r.Work != nil {
			r.Work.Made = slices.DeleteFunc(r.Work.Made, func(m string) bool { return strings.HasPrefix(m, name+UpTo) })
			r.Work.Made = append(r.Work.Made, name+UpTo+strconv.FormatUint(at, 10))
		}
		return nil
	})
	return err
}

// Unmade records that a step is no longer done, not even in part.
func (e *Eraser) Unmade(id, name string) error {
	is := func(m string) bool { return m == name || strings.HasPrefix(m, name+UpTo) }
	if r, err := e.Ledger.Record(id); err != nil || r.Work == nil || !slices.ContainsFunc(r.Work.Made, is) {
		return err
	}
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if r.Work != nil {
			r.Work.Made = slices.DeleteFunc(r.Work.Made, is)
		}
		return nil
	})
	return err
}

// RangeWipe returns what a wipe does to a range of a device; nil: nothing.
func RangeWipe(w drivebay.Wipe) func(context.Context, host.Disk, uint64, uint64) error {
	switch w {
	case drivebay.WipeDiscard:
		return discardRange
	case drivebay.WipeZero:
		return ZeroRange
	}
	return nil
}

// ZeroRange writes zeros to a range of a disk.
func ZeroRange(ctx context.Context, disk host.Disk, off, n uint64) error {
	return disk.Zero(ctx, off, n)
}

// discardRange discards a range; where the drive has no discard, it writes zeros.
func discardRange(ctx context.Context, disk host.Disk, off, n uint64) error {
	err := disk.Discard(ctx, off, n)
	if errors.Is(err, host.ErrUnsupported) {
		return disk.Zero(ctx, off, n)
	}
	return err
}
