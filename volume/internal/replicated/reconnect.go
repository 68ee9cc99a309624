package replicated

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// due reports whether the kernel stopped trying to connect a volume a while ago, though the two sides have no conflict.
func (e *Devices) due(v *drivebay.Volume) bool {
	return e.Opt.ReplicationSecret != nil && v.Replicates() && e.seen.due(v.ID, e.Machine.Now())
}

// connectAgain connects a volume that is due.
func (e *Devices) connectAgain(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || !e.due(&rec.Volume) {
		return err
	}
	e.seen.tried(id, e.Machine.Now())
	return e.reconnect(ctx, rec.Volume)
}

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
