package api

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/drivebay/drivebay"
)

var errUnread = failf(http.StatusServiceUnavailable, "starting", "not all drives have been read yet")

var errStarting = failf(http.StatusServiceUnavailable, "starting", "the drives of the machine have not been listed yet")

func (s *Server) drive(w http.ResponseWriter, r *http.Request) error {
	d, err := s.find(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, d)
	return nil
}

// find returns the drive that the request names. The engine then gets an id and never a kernel
// name, which may have moved to another drive.
func (s *Server) find(r *http.Request) (*drivebay.Drive, error) {
	what, snap := r.PathValue("id"), s.engine.Snapshot()
	if snap.Seq == 0 {
		return nil, errStarting
	}
	if d, ok := snap.Find(what); ok {
		return d, nil
	}
	for _, d := range snap.Drives {
		one := drivebay.Snapshot{Drives: []drivebay.Drive{d}}
		if _, ok := one.Find(what); ok {
			return nil, fmt.Errorf("drive %q: %w: more than one is called so, give the id", what, drivebay.ErrAmbiguous)
		}
	}
	return nil, fmt.Errorf("drive %q: %w", what, drivebay.ErrNotFound)
}

func (s *Server) pages(w http.ResponseWriter, r *http.Request) error {
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

func (s *Server) selfTest(w http.ResponseWriter, r *http.Request) error {
	return act(s, w, r, func(ctx context.Context, b selfTestBody) error {
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

func (s *Server) acknowledge(w http.ResponseWriter, r *http.Request) error {
	return act(s, w, r, func(ctx context.Context, b acknowledgeBody) error {
		d, err := s.find(r)
		if err != nil {
			return err
		}
		return s.engine.Acknowledge(ctx, d.ID, b.Code)
	})
}

func (s *Server) cordon(w http.ResponseWriter, r *http.Request) error {
	return s.switchDrive(w, r, s.engine.Cordon)
}

func (s *Server) claim(w http.ResponseWriter, r *http.Request) error {
	return s.switchDrive(w, r, s.engine.Claim)
}

func (s *Server) leave(w http.ResponseWriter, r *http.Request) error {
	return act(s, w, r, func(ctx context.Context, b leaveBody) error {
		d, err := s.find(r)
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
func (s *Server) switchDrive(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, drive string, on bool) error) error {
	return act(s, w, r, func(ctx context.Context, b switchBody) error {
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

func (s *Server) locate(w http.ResponseWriter, r *http.Request) error {
	return act(s, w, r, func(ctx context.Context, b switchBody) error {
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

func (s *Server) refresh(w http.ResponseWriter, r *http.Request) error {
	return act(s, w, r, func(ctx context.Context, _ struct{}) error { return s.engine.Refresh(ctx) })
}

func (b switchBody) value() (bool, error) {
	if b.On == nil {
		return false, fmt.Errorf("on: %w: want true or false", drivebay.ErrInvalid)
	}
	return *b.On, nil
}

// act reads the body, calls do with it, and answers 204.
func act[B any](_ *Server, w http.ResponseWriter, r *http.Request, do func(context.Context, B) error) error {
	var body B
	if err := readBody(r, &body); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), opTimeout)
	defer cancel()
	if err := do(ctx, body); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readBody decodes one JSON object. It rejects unknown fields, because the caller expects an
// effect that a misspelt field would not have. An empty body counts as {}.
func readBody(r *http.Request, into any) error {
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return failf(http.StatusUnsupportedMediaType, "invalid", "content type %q: want application/json", t)
		}
	}
	body, err := io.ReadAll(r.Body) // from memory: receiveBody has already read it
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	return strict(body, into)
}
