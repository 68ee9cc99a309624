package volume

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// ReleaseVolume releases a volume whose drive has to leave, because its user asks for it:
// the drive does not wait for the volume. Nothing is wiped, and the volume is in use
// again if the drive stays after all.
func (e *Engine) ReleaseVolume(ctx context.Context, id string) error {
	return e.onVolume(ctx, "release", id, func(ctx context.Context, v drivebay.Volume) error {
		if v.Usage == drivebay.VolumeReleased {
			return nil
		}
		if _, err := v.UsageMoved(drivebay.VolumeUsageLetGo); err != nil {
			return fmt.Errorf("%w: none of its drives has to leave", err)
		}
		s, err := e.mountState(ctx, v)
		if err != nil {
			return err
		}
		if len(s.now) > 0 {
			return fmt.Errorf("%w: %s still has it", drivebay.ErrBusy, s.now[0].Path)
		}
		if mounts := s.t.of(s.d); len(mounts) > 0 {
			return fmt.Errorf("%w: it is mounted at %s", drivebay.ErrBusy, mounts[0].Target)
		}
		if err := e.deactivate(ctx, &v); err != nil { // or the kernel would keep the drive open
			return err
		}
		_, err = e.change(id, func(r *drivebay.VolumeRecord) (err error) {
			r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageLetGo)
			return err
		})
		if err != nil {
			return err
		}
		e.note(drivebay.EventVolumeReleased, &v, fmt.Sprintf("volume %q was released: its drive leaves without it", v.Name))
		return e.deactivatePool(ctx, v.Location)
	})
}

// deactivatePool deactivates a thin pool whose volumes are all released.
func (e *Engine) deactivatePool(ctx context.Context, l drivebay.Location) error {
	needed := slices.ContainsFunc(e.all(), func(r *drivebay.VolumeRecord) bool {
		return r.Volume.Location.VG == l.VG && r.Volume.Usage != drivebay.VolumeReleased
	})
	if l.Pool == "" || needed {
		return nil
	}
	return e.lvmActivate(ctx, l, lvm.Deactivate(l.VG, l.Pool))
}

// isUnused reports whether a volume is released: then its snapshots are not needed either.
func (e *Engine) isUnused(id string) bool {
	r, err := e.record(id)
	return err == nil && r.Volume.Usage == drivebay.VolumeReleased
}
