package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/drivebay/drivebay"
)

// onVolume does something with a volume that nobody else works on, and has its
// errors name both.
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

// callersFault are errors that say nothing of the volume: a path that is not there,
// or is hidden by what was mounted above it, is none of its.
var callersFault = []error{fs.ErrNotExist, drivebay.ErrInvalid, drivebay.ErrBusy, drivebay.ErrExists, drivebay.ErrPending, drivebay.ErrNoSupport, drivebay.ErrRange, drivebay.ErrSecret}

// failed has the volume remember that it could not be used.
func (s *scene) failed(cause error) error {
	for _, err := range callersFault {
		if errors.Is(cause, err) {
			return cause
		}
	}
	_, err := s.changeSoon(s.v.ID, func(r *drivebay.VolumeRecord) error {
		v, err := r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: cause.Error(), Since: s.machine.Now(), Retry: drivebay.RetryOnCall})
		if err != nil { // a status that cannot fail: the error says it all
			return nil
		}
		r.Volume = v
		return nil
	})
	return errors.Join(cause, err)
}

// succeeded forgets such a failure, once what failed has been done. A growth that
// failed stands until the volume has grown, however well it can be used.
func (s *scene) succeeded() error {
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
		if err != nil { // it failed in something else, which has its own way out
			return nil
		}
		r.Volume = v
		return nil
	})
	return err
}
