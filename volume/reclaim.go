package volume

import (
	"context"

	"github.com/drivebay/drivebay"
)

// Reclaim makes a filesystem discard its unused blocks on its drive or in its thin pool. It mounts an
// unmounted filesystem without a path, visible to no other process: that mount ends with the call or
// the daemon, and cannot be left behind.
func (e nodeCalls) Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error) {
	var out, came drivebay.Reclaimed
	err := e.ledger.OnVolume(ctx, "reclaim", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if err := e.provision.MayReclaim(ctx, &v, r); err != nil {
			return err
		}
		s, err := e.mounts.MountState(ctx, v)
		if err != nil {
			return err
		}
		came, err = s.Reclaim(ctx, r)
		return e.provision.Reached(&v, err)
	})
	if ctx.Err() == nil {
		out = came
	}
	return out, err
}
