package mounts

import (
	"errors"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// Failed records that the volume could not be used.
func (s *MountState) Failed(cause error) error {
	for _, err := range ledger.CallersFault {
		if errors.Is(cause, err) {
			return cause
		}
	}
	_, err := s.Ledger.ChangeSoon(s.V.ID, func(r *drivebay.VolumeRecord) error {
		v, err := r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: cause.Error(), Since: s.Machine.Now(), Retry: drivebay.RetryOnCall})
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
func (s *MountState) succeeded() error {
	r, err := s.Ledger.Record(s.V.ID)
	if err != nil || r.Volume.CSIStatus != drivebay.CSIFailed {
		return err
	}
	switch r.Volume.State().Before {
	case drivebay.CSIResizing, drivebay.CSIResized:
		return nil
	}
	_, err = s.Ledger.ChangeSoon(s.V.ID, func(r *drivebay.VolumeRecord) error {
		v, err := r.Volume.Moved(drivebay.CSIClear)
		if err != nil { // another operation failed, which is cleared elsewhere
			return nil
		}
		r.Volume = v
		return nil
	})
	return err
}

// AskedAt returns what the mount table shows at a path that may not be in the record.
func (s *VolumeMounts) AskedAt(at MountPath) drivebay.PathFacts {
	if p := s.recorded(at); p != nil {
		return s.pathFacts(*p)
	}
	return s.pathFacts(drivebay.Publication{Path: at.String()})
}
