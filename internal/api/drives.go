package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/drivebay/drivebay"
)

// BayList holds every place for a drive at one moment.
type BayList struct {
	Seq  uint64         `json:"seq"`
	Bays []drivebay.Bay `json:"bays"`
}

// These are the bodies of the calls that change something.
type (
	selfTestBody struct {
		Kind string `json:"kind"` // short, long or abort
	}
	acknowledgeBody struct {
		Code string `json:"code"` // code of the finding; empty: all findings that can be accepted
	}
	leaveBody struct {
		Do  drivebay.LeaveVerb `json:"do"`
		Why string             `json:"why,omitempty"` // reason of the operator
	}
	switchBody struct {
		On *bool `json:"on"`
	}
)

// driveHandlers answer the calls about drives and bays.
type driveHandlers struct{ *Server }

func (s driveHandlers) snapshot(w http.ResponseWriter, r *http.Request) error {
	return s.view(w, r, "snapshot", func(snap *drivebay.Snapshot) any { return snap })
}

// drives answers with the snapshot without the evidence, which is most of its size.
func (s driveHandlers) drives(w http.ResponseWriter, r *http.Request) error {
	return s.view(w, r, "drives", func(snap *drivebay.Snapshot) any {
		short := *snap
		short.Drives = make([]drivebay.Drive, len(snap.Drives))
		for i, d := range snap.Drives {
			d.Evidence = nil
			short.Drives[i] = d
		}
		return short
	})
}

func (s driveHandlers) drive(w http.ResponseWriter, r *http.Request) error {
	d, err := s.find(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, d)
	return nil
}

// find returns the drive that the request names. The engine then gets an id and never a kernel
// name, which may have moved to another drive.
func (s driveHandlers) find(r *http.Request) (*drivebay.Drive, error) {
	what, snap := r.PathValue("id"), s.engine.Snapshot()
	if snap.Seq == 0 {
		return nil, errStarting
	}
	return snap.Resolve(what)
}

// findWhole returns the drive that the request names as a whole: for what cannot be undone.
func (s driveHandlers) findWhole(r *http.Request) (*drivebay.Drive, error) {
	snap := s.engine.Snapshot()
	if snap.Seq == 0 {
		return nil, errStarting
	}
	return snap.ResolveWhole(r.PathValue("id"))
}

func (s driveHandlers) pages(w http.ResponseWriter, r *http.Request) error {
	d, err := s.find(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), opTimeout)
	defer cancel()
	pages, err := s.engine.Pages(ctx, d.ID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, append([]drivebay.RawPage{}, pages...))
	return nil
}

func (s driveHandlers) selfTest(w http.ResponseWriter, r *http.Request) error {
	return act(w, r, func(ctx context.Context, b selfTestBody) error {
		d, err := s.find(r)
		if err != nil {
			return err
		}
		if b.Kind == "" {
			return fmt.Errorf("kind: %w: want short, long or abort", drivebay.ErrInvalid)
		}
		return s.engine.SelfTest(ctx, d.ID, b.Kind)
	})
}

func (s driveHandlers) acknowledge(w http.ResponseWriter, r *http.Request) error {
	return act(w, r, func(ctx context.Context, b acknowledgeBody) error {
		d, err := s.find(r)
		if err != nil {
			return err
		}
		return s.engine.Acknowledge(ctx, d.ID, b.Code)
	})
}

func (s driveHandlers) cordon(w http.ResponseWriter, r *http.Request) error {
	return s.switchDrive(w, r, s.engine.Cordon)
}

func (s driveHandlers) claim(w http.ResponseWriter, r *http.Request) error {
	return s.switchDrive(w, r, s.engine.Claim)
}

func (s driveHandlers) leave(w http.ResponseWriter, r *http.Request) error {
	return act(w, r, func(ctx context.Context, b leaveBody) error {
		d, err := s.findWhole(r)
		if err != nil {
			return err
		}
		if b.Do == drivebay.LeaveForget && s.opt.Volumes != nil {
			return s.opt.Volumes.ForgetDrive(ctx, d.ID, b.Why)
		}
		return s.engine.Operate(ctx, d.ID, b.Do, b.Why)
	})
}

// switchDrive sets or clears a property of a drive.
func (s driveHandlers) switchDrive(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, drive string, on bool) error) error {
	return act(w, r, func(ctx context.Context, b switchBody) error {
		d, err := s.find(r)
		if err != nil {
			return err
		}
		on, err := b.value()
		if err != nil {
			return err
		}
		return do(ctx, d.ID, on)
	})
}

func (s driveHandlers) bays(w http.ResponseWriter, r *http.Request) error {
	return s.view(w, r, "bays", func(snap *drivebay.Snapshot) any {
		return BayList{snap.Seq, append([]drivebay.Bay{}, snap.Bays...)}
	})
}

func (s driveHandlers) locate(w http.ResponseWriter, r *http.Request) error {
	return act(w, r, func(ctx context.Context, b switchBody) error {
		if s.engine.Snapshot().Seq == 0 {
			return errStarting
		}
		on, err := b.value()
		if err != nil {
			return err
		}
		return s.engine.Locate(ctx, r.PathValue("bay"), on)
	})
}

func (s driveHandlers) refresh(w http.ResponseWriter, r *http.Request) error {
	return act(w, r, func(ctx context.Context, _ struct{}) error { return s.engine.Refresh(ctx) })
}

// wanted returns the newest snapshot, or with ?after=SEQ&wait=TIME the first one with another
// number. A SEQ higher than the newest is from before a restart. Before the first listing the answer is an error.
func (s driveHandlers) wanted(r *http.Request) (*drivebay.Snapshot, error) {
	snap, err := s.awaited(r)
	if err == nil && snap.Seq == 0 {
		err = errStarting
	}
	return snap, err
}

func (s driveHandlers) awaited(r *http.Request) (*drivebay.Snapshot, error) {
	after, wait, err := waitOf(r)
	snap := s.engine.Snapshot()
	if err != nil || wait == 0 || snap.Seq != after {
		return snap, err
	}
	ctx, cancel := s.patience(r, wait)
	defer cancel()
	next, err := s.engine.Wait(ctx, after)
	if err == nil {
		return next, nil
	}
	if ctx.Err() != nil {
		return s.engine.Snapshot(), nil // no change within the time: answer with the present state
	}
	return nil, err
}

// view answers with a part of the snapshot, which is encoded once for all callers.
func (s driveHandlers) view(w http.ResponseWriter, r *http.Request, name string, picture func(*drivebay.Snapshot) any) error {
	snap, err := s.wanted(r)
	if err != nil {
		return err
	}
	body, err := s.encode(snap, name, func() any { return picture(snap) })
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	writeBody(w, http.StatusOK, body)
	return nil
}
