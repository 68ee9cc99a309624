package replicated

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// reconnect connects an attached volume with the secret of the engine, if there is one. What the two sides have decides the kernel,
// as after a call: it refuses the peer after a split brain.
func (e *Devices) reconnect(ctx context.Context, v drivebay.Volume) error {
	if e.Opt.ReplicationSecret == nil {
		return nil
	}
	text, err := e.Opt.ReplicationSecret()
	if err != nil {
		return fmt.Errorf("volume %s: replication: connect again: %w", v.ID, err)
	}
	secret, err := drbd.NewSecret(text)
	if err != nil {
		return fmt.Errorf("volume %s: replication: connect again: %w", v.ID, err)
	}
	k, err := e.kernel(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	return e.connect(ctx, k, &v, secret, false)
}
