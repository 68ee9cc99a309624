package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/instances"
)

// RetryVolume retries failed work of the engine now: creation, growth and removal. It continues where
// the work stopped. Only the caller of a mount can repeat it, because it needs the paths and options.
func (e operatorCalls) RetryVolume(ctx context.Context, id string) error {
	return e.ledger.OnVolume(ctx, "retry", id, func(ctx context.Context, v drivebay.Volume) error {
		if v.CSIStatus != drivebay.CSIFailed {
			if v.Usage == drivebay.VolumeUsageFailed {
				return e.copyaway.ReadAgain(id)
			}
			if lost, err := e.repair.MountLost(ctx, v); lost || err != nil {
				return err
			}
			return fmt.Errorf("%w: no failure to retry, its status is %v", drivebay.ErrInvalid, v.CSIStatus)
		}
		if err := instances.Undecided(&v); err != nil {
			return err
		}
		switch before := v.State().Before; before {
		case drivebay.CSICreating:
			return e.repair.Retry(ctx, id, drivebay.WorkCreate, drivebay.CSICreate, e.provision.MakeKeyless)
		case drivebay.CSIResizing:
			return e.repair.Retry(ctx, id, drivebay.WorkExpand, drivebay.CSIResize, e.expand.Enlarge)
		case drivebay.CSIRemoving:
			return e.delete(ctx, id)
		case drivebay.CSIResized:
			return e.repair.GrowAgain(ctx, v)
		default:
			return fmt.Errorf("%w: the mount failed; the kubelet retries it while a pod needs the volume", drivebay.ErrInvalid)
		}
	})
}
