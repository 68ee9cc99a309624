package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/replication"
	"github.com/drivebay/drivebay/volume/internal/copyaway"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/replicated"
)

// replicationCalls are the calls of the replication contract of CSI-Addons.
type replicationCalls struct{ *parts }

// secretOf is the shared secret of a call. A missing one is a wrong one, by the tables of CSI-Addons.
func secretOf(secrets drivebay.Secrets) (drbd.Secret, error) {
	secret, err := drbd.NewSecret(secrets[drivebay.SecretReplication])
	if err != nil {
		return drbd.Secret{}, fmt.Errorf("%w: %q: %w", drivebay.ErrSecret, drivebay.SecretReplication, err)
	}
	return secret, nil
}

// EnableReplication replicates a volume that is not in use, whose data stay.
func (e replicationCalls) EnableReplication(ctx context.Context, r drivebay.ReplicationRequest) error {
	return e.withSecret(ctx, "enable replication of", r.Volume, r.Secrets, func(ctx context.Context, v drivebay.Volume, secret drbd.Secret) error {
		if err := e.copyaway.EndMoveFirst(ctx, r.Volume, false); err != nil {
			return err
		}
		return e.replicated.Enable(ctx, v, r, secret)
	})
}

// withSecret calls do with a volume and the secret of the call.
func (e replicationCalls) withSecret(ctx context.Context, op, id string, secrets drivebay.Secrets, do func(context.Context, drivebay.Volume, drbd.Secret) error) error {
	_, err := answerWithSecret(ctx, e, op, id, secrets, func(ctx context.Context, v drivebay.Volume, secret drbd.Secret) (struct{}, error) {
		return struct{}{}, do(ctx, v, secret)
	})
	return err
}

// answerWithSecret is withSecret for a call that has an answer.
func answerWithSecret[T any](ctx context.Context, e replicationCalls, op, id string, secrets drivebay.Secrets, do func(context.Context, drivebay.Volume, drbd.Secret) (T, error)) (T, error) {
	return ledger.Answer(ctx, e.ledger, op, id, func(ctx context.Context, v drivebay.Volume) (answer T, err error) {
		secret, err := secretOf(secrets)
		if err == nil {
			answer, err = do(ctx, v, secret)
		}
		return answer, e.provision.Reached(&v, err)
	})
}

// DisableReplication gives the plain volume back, with its data.
func (e replicationCalls) DisableReplication(ctx context.Context, c drivebay.ReplicationCall) error {
	return e.withSecret(ctx, "disable replication of", c.Volume, c.Secrets, func(ctx context.Context, v drivebay.Volume, _ drbd.Secret) error {
		return e.replicated.Disable(ctx, v)
	})
}

// PromoteVolume lets a volume be used here. Force declares its data to be the current ones.
func (e replicationCalls) PromoteVolume(ctx context.Context, c drivebay.ReplicationCall) error {
	return e.withSecret(ctx, "promote", c.Volume, c.Secrets, func(ctx context.Context, v drivebay.Volume, secret drbd.Secret) error {
		return e.replicated.Promote(ctx, v, c.Force, secret)
	})
}

// DemoteVolume lets the peer's volume be used.
func (e replicationCalls) DemoteVolume(ctx context.Context, c drivebay.ReplicationCall) error {
	return e.withSecret(ctx, "demote", c.Volume, c.Secrets, func(ctx context.Context, v drivebay.Volume, secret drbd.Secret) error {
		return e.replicated.Demote(ctx, v, secret)
	})
}

// ResyncVolume reconnects a volume that is demoted; ready means that both sides have the same data. After a split brain,
// force gives up the data of this side.
func (e replicationCalls) ResyncVolume(ctx context.Context, c drivebay.ReplicationCall) (ready bool, err error) {
	return answerWithSecret(ctx, e, "resync", c.Volume, c.Secrets, func(ctx context.Context, v drivebay.Volume, secret drbd.Secret) (bool, error) {
		return e.replicated.Resync(ctx, v, c.Force, secret)
	})
}

// ReplicationInfo returns how well a volume is replicated. ErrRefused: it is not replicated.
func (e replicationCalls) ReplicationInfo(ctx context.Context, id string) (drivebay.ReplicationInfo, error) {
	return ledger.Answer(ctx, e.ledger, "look at the replication of", id, e.replications.Info)
}

// Replicates returns why this machine replicates nothing, nil if it can.
func (e replicationCalls) Replicates(ctx context.Context) error { return e.drbd.Can(ctx) }

// ReplicationView returns what the kernel says of the replication of a volume; nil: it is not replicated.
func (e replicationCalls) ReplicationView(ctx context.Context, id string) (*replication.View, error) {
	return ledger.Answer(ctx, e.ledger, "look at the replication of", id, e.drbd.Look)
}

// resumeReplication attaches the replicated volumes whose drives are here, after a listing, and gives them their roles back.
// They connect with the secret of the options, or with the next call that has it. Those whose drives are gone are detached. A record
// that is older than the mark on its drive is corrected.
func (e *Engine) resumeReplication(first bool) {
	older := func(v *drivebay.Volume) bool { return v.Replication == nil && e.partitions.Marked(v) }
	for _, r := range e.ledger.All() {
		again, is, working := e.drbd.Restore, (*drivebay.Volume).Replicates, !copyaway.HasPiece(r)
		gone := func(v *drivebay.Volume) bool { return v.Replicates() && e.drbd.Gone(v) }
		switch v := &r.Volume; {
		case e.env.Opt.DRBD != nil && gone(v): // its work waits for the drive
			again, is = e.drbd.LetGo, gone
		case working:
			continue
		case older(v):
			again, is = e.drbd.Correct, older
		case e.env.Opt.DRBD == nil || !v.Replicates():
			continue
		case !(first && e.env.Opt.ReplicationSecret != nil) && e.device.StaysOpen(v), !first && replicated.OnBadDrive(v, e.env.Drives.Snapshot().Drives):
			continue
		}
		id := r.Volume.ID
		e.provision.ResumeWork(first, id, again, func() bool {
			r, err := e.ledger.Record(id)
			return err == nil && !copyaway.HasPiece(&r) == working && is(&r.Volume)
		})
	}
}
