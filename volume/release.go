package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// ReleaseVolume releases a volume whose drive has to leave, because its user asks for it:
// the drive does not wait for the volume. Nothing is wiped, and the volume is in use
// again if the drive stays after all.
func (e operatorCalls) ReleaseVolume(ctx context.Context, id string) error {
	return e.ledger.OnVolume(ctx, "release", id, func(ctx context.Context, v drivebay.Volume) error {
		if v.Usage == drivebay.VolumeReleased {
			return nil
		}
		if _, err := v.UsageMoved(drivebay.VolumeUsageLetGo); err != nil {
			return fmt.Errorf("%w: none of its drives has to leave", err)
		}
		s, err := e.mounts.MountState(ctx, v)
		if err != nil {
			return err
		}
		if len(s.Now) > 0 {
			return fmt.Errorf("%w: %s still has it", drivebay.ErrBusy, s.Now[0].Path)
		}
		if mounts := s.T.Of(s.D); len(mounts) > 0 {
			return fmt.Errorf("%w: it is mounted at %s", drivebay.ErrBusy, mounts[0].Target)
		}
		if err := e.device.Stack(&v).Piece().Close(ctx); err != nil { // or the kernel would keep the drive open
			return err
		}
		_, err = e.ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
			r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageLetGo)
			return err
		})
		if err != nil {
			return err
		}
		e.ledger.Note(drivebay.EventVolumeReleased, &v, fmt.Sprintf("volume %q was released: its drive leaves without it", v.Name))
		return e.evacuate.DeactivatePool(ctx, v.Location)
	})
}
