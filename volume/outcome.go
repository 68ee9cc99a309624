package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/drivebay/drivebay"
)

// onVolume calls do with a volume while no other call works on it. Its errors name the operation and
// the volume.
func (e *Engine) onVolume(ctx context.Context, op, id string, do func(context.Context, drivebay.Volume) error) error {
	if _, err := e.record(id); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return e.work(ctx, id, func(ctx context.Context) error {
		r, err := e.record(id)
		if err == nil {
			err = do(ctx, r.Volume)
		}
		if err != nil {
			return fmt.Errorf("%s volume %s: %w", op, id, err)
		}
		return nil
	})
}

// callersFault lists errors that say nothing about the volume, for example of a path that is missing
// or hidden by a later mount.
var callersFault = []error{fs.ErrNotExist, drivebay.ErrInvalid, drivebay.ErrBusy, drivebay.ErrExists, drivebay.ErrPending, drivebay.ErrNoSupport, drivebay.ErrRange, drivebay.ErrSecret}

// failed records that the volume could not be used.
func (s *mountState) failed(cause error) error {
	for _, err := range callersFault {
		if errors.Is(cause, err) {
			return cause
		}
	}
	_, err := s.changeSoon(s.v.ID, func(r *drivebay.VolumeRecord) error {
		v, err := r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: cause.Error(), Since: s.machine.Now(), Retry: drivebay.RetryOnCall})
		if err != nil { // a status that cannot fail: the returned error is enough
			return nil
		}
		r.Volume = v
		return nil
	})
	return errors.Join(cause, err)
}

// succeeded clears such a failure after the operation has succeeded. A failed growth stays recorded
// until the volume has grown, even if the volume can be used.
func (s *mountState) succeeded() error {
	r, err := s.record(s.v.ID)
	if err != nil || r.Volume.CSIStatus != drivebay.CSIFailed {
		return err
	}
	switch r.Volume.State().Before {
	case drivebay.CSIResizing, drivebay.CSIResized:
		return nil
	}
	_, err = s.changeSoon(s.v.ID, func(r *drivebay.VolumeRecord) error {
		v, err := r.Volume.Moved(drivebay.CSIClear)
		if err != nil { // another operation failed, which is cleared elsewhere
			return nil
		}
		r.Volume = v
		return nil
	})
	return err
}
