package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/drivebay/drivebay"
)

// OnVolume calls do with a volume while no other call works on it. Its errors name the operation and
// the volume.
func (e *Ledger) OnVolume(ctx context.Context, op, id string, do func(context.Context, drivebay.Volume) error) error {
	if _, err := e.Record(id); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return e.Work(ctx, id, func(ctx context.Context) error {
		r, err := e.Record(id)
		if err == nil {
			err = do(ctx, r.Volume)
		}
		if err != nil {
			return fmt.Errorf("%s volume %s: %w", op, id, err)
		}
		return nil
	})
}

// Answer is OnVolume for work that has an answer. A caller that has gone gets none: the work continues.
func Answer[T any](ctx context.Context, e *Ledger, op, id string, do func(context.Context, drivebay.Volume) (T, error)) (answer T, err error) {
	came := make(chan T, 1)
	err = e.OnVolume(ctx, op, id, func(ctx context.Context, v drivebay.Volume) error {
		is, err := do(ctx, v)
		came <- is
		return err
	})
	select {
	case answer = <-came:
	default:
	}
	return answer, err
}

// CallersFault lists errors that say nothing about the volume, for example of a path that is missing
// or hidden by a later mount.
var CallersFault = []error{fs.ErrNotExist, drivebay.ErrInvalid, drivebay.ErrBusy, drivebay.ErrExists, drivebay.ErrPending, drivebay.ErrNoSupport, drivebay.ErrRange, drivebay.ErrSecret}

// askedAgain are the errors after which a sidecar or a kubelet does not know what has been done: it calls again, or undoes it. Every other
// one is the last to it (isFinalError in external-provisioner, external-snapshotter and pkg/volume/csi of the kubelet).
var askedAgain = []error{drivebay.ErrUnavailable, drivebay.ErrPending, drivebay.ErrTimeout, drivebay.ErrNoSpace, context.DeadlineExceeded, context.Canceled}

// Begun makes the error of a call that has done a part of its work one after which its caller calls again, or undoes it.
func Begun(err error) error {
	if err == nil || slices.ContainsFunc(askedAgain, func(is error) bool { return errors.Is(err, is) }) {
		return err
	}
	return fmt.Errorf("%w: %w", drivebay.ErrUnavailable, err)
}

// Failed records that the work on a volume failed. Work that was interrupted by the end of the engine
// has not failed: it is continued later.
func (e *Ledger) Failed(ctx context.Context, id string, cause error) error {
	if ctx.Err() != nil || errors.Is(cause, ErrStopped) {
		return cause
	}
	r, err := e.Change(id, func(r *drivebay.VolumeRecord) error {
		v, err := r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: cause.Error(), Since: e.Machine.Now(), Retry: drivebay.RetryOnCall})
		r.Volume = v
		return err
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	e.Note(drivebay.EventVolumeFailed, &r.Volume, cause.Error())
	return cause
}

// Note sends an event of a volume.
func (e *Ledger) Note(kind drivebay.EventKind, v *drivebay.Volume, cause string) {
	ev := drivebay.Event{At: e.Machine.Now(), Kind: kind, Volume: v.ID, To: v.CSIStatus.String(), Cause: cause}
	if len(v.Location.Drives) > 0 {
		ev.Drive = v.Location.Drives[0]
	}
	e.Drives.Note(ev)
}

// ErrStopped ends work as a crash would: nothing of it is recorded.
var ErrStopped = errors.New("stopped")
