package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/mounts"
)

// RotateKey gives an encrypted volume another passphrase. It adds the new one before it
// removes the old one, and each is in the header or is not: after an interruption
// anywhere, the same call has the same result. A volume in use stays in use.
func (e nodeCalls) RotateKey(ctx context.Context, r drivebay.KeyRequest) error {
	return e.ledger.OnVolume(ctx, "rotate key of", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if !v.Encrypted() {
			return fmt.Errorf("%w: it is not encrypted", drivebay.ErrNoSupport)
		}
		if v.AwaitsKey {
			return fmt.Errorf("%w: it has no passphrase before it is staged first", drivebay.ErrRefused)
		}
		if err := mounts.CanUse(&v, !v.HasFilesystem(), "", nil); err != nil {
			return err
		}
		next, err := luks.Passphrase(r.New)
		if err := errors.Join(err, e.mounts.HasPaths(ctx, &v, r.Path)); err != nil {
			return err
		}
		old, err := luks.TheKey(r.Secrets)
		if err != nil {
			return err
		}
		if err := e.device.MayWrite(v.Location.Drives...); err != nil { // before the volume is opened: a mirror writes to its drives
			return err
		}
		if err := e.luks.MayRotate(ctx, &v, old, next); err != nil {
			return e.provision.Reached(&v, err)
		}
		return e.provision.Reached(&v, errors.Join(e.steps.Run(ctx, v.ID, e.luks.Rotation(&v, old, next)), e.mounts.LeaveAsFound(context.WithoutCancel(ctx), &v)))
	})
}
