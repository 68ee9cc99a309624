package replicated

import (
	"context"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// due reports whether the kernel stopped trying to connect a volume a while ago, though the two sides have no conflict.
func (e *Devices) due(v *drivebay.Volume) bool {
	return e.Opt.ReplicationSecret != nil && v.Replicates() && e.seen.Due(v.ID, e.Machine.Now())
}

// connectAgain connects a volume that is due.
func (e *Devices) connectAgain(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || !e.due(&rec.Volume) {
		return err
	}
	e.seen.Tried(id, e.Machine.Now())
	if err := e.reconnect(ctx, rec.Volume); err != nil {
		e.Log.Warn("a volume is not connected again: the next try is in a minute", "op", "replication", "volume", id, "err", err)
	}
	return nil
}

// meetTime is how long a volume that was primary waits for its peer before it is primary again.
const meetTime = 10 * time.Second

// meet connects a volume whose device has just been made, before it becomes primary again, and waits for its peer. A primary begins a
// generation of its own without its peer, which is a split brain if the peer was promoted meanwhile; a secondary gets from the peer what
// it missed. Without the secret it has to become primary alone.
func (e *Devices) meet(ctx context.Context, k drbd.Kernel, v *drivebay.Volume, st drbd.Status) (drbd.Status, error) {
	secret, err := ownSecret(e.Opt.ReplicationSecret)
	if err != nil || secret == (drbd.Secret{}) {
		return st, nil
	}
	if err := e.connect(ctx, k, v, secret, false); err != nil { // the data are here all the same
		e.Log.Warn("a volume is primary without having met its peer", "op", "replication", "volume", v.ID, "err", err)
		return st, nil
	}
	for end := e.Machine.Now().Add(meetTime); ; {
		st, err = statusOf(ctx, k, v)
		if err != nil || st.State.Connection >= drbd.Connected || st.State.Connection == drbd.StandAlone || e.seen.Conflict(st, "") != "" || !e.Machine.Now().Before(end) {
			return st, err
		}
		select {
		case <-e.Machine.After(200 * time.Millisecond):
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

// ownSecret is the secret of the engine, which read returns; the zero one if it has no secret.
func ownSecret(read func() (string, error)) (drbd.Secret, error) {
	if read == nil {
		return drbd.Secret{}, nil
	}
	text, err := read()
	if err != nil {
		return drbd.Secret{}, err
	}
	return drbd.NewSecret(text)
}

// ConnectsAgain reports whether the engine has a secret of its own: without one only a call connects a volume.
func (e *Devices) ConnectsAgain() bool {
	secret, err := ownSecret(e.Opt.ReplicationSecret)
	return err == nil && secret != (drbd.Secret{})
}

// reconnect connects an attached volume with the secret of the engine, if there is one. What the two sides have decides the kernel,
// as after a call: it refuses the peer after a split brain.
func (e *Devices) reconnect(ctx context.Context, v drivebay.Volume) error {
	secret, err := ownSecret(e.Opt.ReplicationSecret)
	if err != nil {
		return fmt.Errorf("volume %s: replication: connect again: %w", v.ID, err)
	}
	if secret == (drbd.Secret{}) {
		return nil
	}
	k, err := e.kernel(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	return e.connect(ctx, k, &v, secret, false)
}
