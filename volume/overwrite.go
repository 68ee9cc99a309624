package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// piece is how much is zeroed or discarded in one call, and milestone how often the progress is
// recorded: a large hard disk takes a day.
const (
	piece     = gib
	milestone = 16 * piece
)

// overwrite zeroes or discards a range of a volume piece by piece, for the step of that name. If the
// range starts at 0, all of the volume is new or removed, and must not be open elsewhere.
func (e *Engine) overwrite(ctx context.Context, v *drivebay.Volume, name string, from, to uint64, do func(context.Context, host.Disk, uint64, uint64) error) error {
	for at := max(from, e.reached(v.ID, name)); at < to; at += piece {
		if at > from && (at-from)%milestone == 0 {
			if err := e.reach(v.ID, name, at); err != nil {
				return err
			}
		}
		err := e.onDevice(ctx, v, from == 0, func(ctx context.Context, disk host.Disk) error {
			if to > disk.Size() {
				return fmt.Errorf("%w: the device has %s, smaller than the %s to write", drivebay.ErrRefused, sizeText(disk.Size()), sizeText(to))
			}
			if err := do(ctx, disk, at, min(piece, to-at)); err != nil {
				return err
			}
			return disk.Sync()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const upTo = " up to "

// reached returns how far a step of a volume had come when that was last recorded.
func (e *Engine) reached(id, name string) uint64 {
	r, err := e.record(id)
	if err != nil || r.Work == nil {
		return 0
	}
	for _, m := range r.Work.Made {
		if text, ok := strings.CutPrefix(m, name+upTo); ok {
			n, _ := strconv.ParseUint(text, 10, 64) // 0, the start, if it is not a number
			return n
		}
	}
	return 0
}

func (e *Engine) reach(id, name string, at uint64) error {
	_, err := e.change(id, func(r *drivebay.VolumeRecord) error {
		if r.Work != nil {
			r.Work.Made = slices.DeleteFunc(r.Work.Made, func(m string) bool { return strings.HasPrefix(m, name+upTo) })
			r.Work.Made = append(r.Work.Made, name+upTo+strconv.FormatUint(at, 10))
		}
		return nil
	})
	return err
}

// rangeWipe returns what a wipe does to a range of a device; nil: nothing.
func rangeWipe(w drivebay.Wipe) func(context.Context, host.Disk, uint64, uint64) error {
	switch w {
	case drivebay.WipeDiscard:
		return discardRange
	case drivebay.WipeZero:
		return zeroRange
	}
	return nil
}

func zeroRange(ctx context.Context, disk host.Disk, off, n uint64) error {
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
