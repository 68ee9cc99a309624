package volume

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// ReleaseVolume lets go of a volume whose drive has to leave, by the word of its user:
// the drive goes without it. Nothing is wiped, and until the drive is gone it can stay.
func (e *Engine) ReleaseVolume(ctx context.Context, id string) error {
	return e.onVolume(ctx, "release", id, func(ctx context.Context, v drivebay.Volume) error {
		if v.Usage == drivebay.VolumeReleased {
			return nil
		}
		if _, err := v.UsageMoved(drivebay.VolumeUsageLetGo); err != nil {
			return fmt.Errorf("%w: none of its drives has to leave", err)
		}
		s, err := e.scene(ctx, v)
		if err != nil {
			return err
		}
		if len(s.now) > 0 {
			return fmt.Errorf("%w: %s still has it", drivebay.ErrBusy, s.now[0].Path)
		}
		if err := e.deactivate(ctx, &v); err != nil { // or the kernel would not let go of the drive
			return err
		}
		_, err = e.change(id, func(r *drivebay.VolumeRecord) (err error) {
			r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageLetGo)
			return err
		})
		if err != nil {
			return err
		}
		e.note(drivebay.EventVolumeReleased, &v, fmt.Sprintf("volume %q was let go of: its drive does not wait for it", v.Name))
		return e.closePool(ctx, v.Location)
	})
}

// closePool has the kernel let go of a thin pool in which nobody needs anything any more.
func (e *Engine) closePool(ctx context.Context, l drivebay.Location) error {
	needed := slices.ContainsFunc(e.all(), func(r *drivebay.VolumeRecord) bool {
		return r.Volume.Location.VG == l.VG && r.Volume.Usage != drivebay.VolumeReleased
	})
	if l.Pool == "" || needed {
		return nil
	}
	return e.lvmActivate(ctx, l, lvm.Deactivate(l.VG, l.Pool))
}

// letGo says whether nobody needs a volume any more, nor its snapshots.
func (e *Engine) letGo(id string) bool {
	r, err := e.record(id)
	return err == nil && r.Volume.Usage == drivebay.VolumeReleased
}
