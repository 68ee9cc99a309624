package volume

import (
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// Reclaim makes a filesystem discard its unused blocks on its drive or in its thin pool. It mounts an
// unmounted filesystem without a path, visible to no other process: that mount ends with the call or
// the daemon, and cannot be left behind.
func (e nodeCalls) Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error) {
	return ledger.Answer(ctx, e.ledger, "reclaim", r.Volume, func(ctx context.Context, v drivebay.Volume) (out drivebay.Reclaimed, err error) {
		if err := e.provision.MayReclaim(ctx, &v, r); err != nil {
			return out, err
		}
		s, err := e.mounts.MountState(ctx, v)
		if err != nil {
			return out, err
		}
		out, err = s.Reclaim(ctx, r)
		return out, e.provision.Reached(&v, err)
	})
}
