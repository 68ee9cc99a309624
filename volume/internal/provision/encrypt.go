package provision

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// An encrypted volume can be requested without its passphrase (drivebay.VolumeRequest.KeyAtStage). Its piece of
// the drives then keeps the mark of an unfinished volume, on the drive itself, until the first stage has
// encrypted and formatted it. So the rule is the same as for every new volume: only a piece with that mark is
// formatted, whatever the records say.

// awaitsKey reports whether a volume is made without its passphrase. A copy has the header of its source.
func awaitsKey(r drivebay.VolumeRequest) bool {
	return r.KeyAtStage && r.Class.Encryption != "" && r.Source == (drivebay.Source{})
}

// Encrypt writes the header and the filesystem of a volume that awaits its passphrase.
func (e *Provisioner) Encrypt(ctx context.Context, id string, secrets drivebay.Secrets) error {
	_, err := luks.Passphrase(secrets)
	if err = errors.Join(err, e.Device.MayChange(id)); err != nil {
		return err
	}
	rec, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		switch {
		case r.Work == nil:
			r.Work = &drivebay.Work{Op: drivebay.WorkEncrypt, Since: e.Machine.Now()}
		case r.Work.Op != drivebay.WorkEncrypt:
			return fmt.Errorf("%w: %s comes first", drivebay.ErrPending, r.Work.Op)
		}
		return nil
	})
	if err != nil {
		return err
	}
	rec.Volume.AwaitsKey = false
	plan, err := e.piece(rec).complete(secrets, new(atomic.Bool))
	if err == nil {
		err = e.Steps.Run(ctx, id, plan)
	}
	if ctx.Err() != nil || errors.Is(err, ledger.ErrStopped) {
		return err
	}
	_, ended := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		r.Work, r.Volume.AwaitsKey = nil, err != nil
		return nil
	})
	return errors.Join(steps.InOurWords(err), ended)
}

// DropEncryption ends the work of an Encrypt that was interrupted by the end of the daemon: it needs a passphrase,
// and the next stage begins again.
func (e *Provisioner) DropEncryption(_ context.Context, id string) error {
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		r.Work = nil
		return nil
	})
	return err
}
