package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/drivebay/drivebay"
)

// EventList holds consecutive events, oldest first. Last is the number to continue from.
type EventList struct {
	Last   uint64           `json:"last"`
	Events []drivebay.Event `json:"events"`
}

// BayList holds every place for a drive at one moment.
type BayList struct {
	Seq  uint64         `json:"seq"`
	Bays []drivebay.Bay `json:"bays"`
}

// Status is the state of the daemon.
type Status struct {
	Status  string   `json:"status"`            // ok or not ready
	Reasons []string `json:"reasons,omitempty"` // why the daemon is not ready
	// Unread names the drives that have not been read yet. Calls that depend on their volumes fail
	// with "unavailable".
	Unread []string `json:"unread,omitempty"`
	// Unwritten holds the ids of the volumes whose newest record is only in memory until the
	// record store is writable again.
	Unwritten []string `json:"unwritten,omitempty"`
	// Newer holds the ids of the volumes that the daemon found since its start on drives that the
	// record store lists without them: the record store is older than the drives.
	Newer []string `json:"newer,omitempty"`
}

// Ready reports whether the daemon is ready.
func (s Status) Ready() bool { return len(s.Reasons) == 0 }

func (s *Server) alive(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, Status{Status: "ok"})
	return nil
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	st, code := s.status(), http.StatusOK
	if !st.Ready() {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, st)
	return nil
}

func (s *Server) showStatus(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, s.status())
	return nil
}

// status returns the state of the daemon. It accesses no drive.
func (s *Server) status() Status {
	st := Status{Status: "ok"}
	if s.engine.Snapshot().Seq == 0 {
		st.Reasons = append(st.Reasons, errStarting.Message)
	}
	if s.opt.Ready != nil {
		st.Reasons = append(st.Reasons, s.opt.Ready()...)
	}
	if s.opt.Volumes != nil {
		var ready bool
		st.Unwritten, st.Newer = s.opt.Volumes.Unwritten(), s.opt.Volumes.Newer()
		if st.Unread, ready = s.opt.Volumes.Unread(); !ready && s.engine.Snapshot().Seq > 0 {
			st.Reasons = append(st.Reasons, errUnread.Message)
		}
	}
	if !st.Ready() {
		st.Status = "not ready"
	}
	return st
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.opt.Metrics == nil {
		return fmt.Errorf("metrics: %w", drivebay.ErrNoSupport)
	}
	s.opt.Metrics.ServeHTTP(w, r)
	return nil
}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) error {
	if s.opt.OpenAPI == nil {
		return fmt.Errorf("API description: %w", drivebay.ErrNoSupport)
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	_, _ = w.Write(s.opt.OpenAPI)
	return nil
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, s.opt.Version)
	return nil
}

func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) error {
	return s.view(w, r, "snapshot", func(snap *drivebay.Snapshot) any { return snap })
}

// drives answers with the snapshot without the evidence, which is most of its size.
func (s *Server) drives(w http.ResponseWriter, r *http.Request) error {
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

func (s *Server) bays(w http.ResponseWriter, r *http.Request) error {
	return s.view(w, r, "bays", func(snap *drivebay.Snapshot) any {
		return BayList{snap.Seq, append([]drivebay.Bay{}, snap.Bays...)}
	})
}

// view answers with a part of the snapshot, which is encoded once for all callers.
func (s *Server) view(w http.ResponseWriter, r *http.Request, name string, picture func(*drivebay.Snapshot) any) error {
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

// encode returns the JSON of a view and caches the newest one; of is the object that it was made
// from.
func (s *Server) encode(of any, name string, picture func() any) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.cache[name]; kept.of == of {
		return kept.body, nil
	}
	body, err := json.Marshal(picture())
	if err == nil {
		s.cache[name] = encoded{of, body}
	}
	return body, err
}

// wanted returns the newest snapshot, or with ?after=SEQ&wait=TIME the first one with another
// number. A SEQ higher than the newest is from before a restart.
func (s *Server) wanted(r *http.Request) (*drivebay.Snapshot, error) {
	after, wait, err := waitOf(r)
	snap := s.engine.Snapshot()
	if err == nil && wait == 0 && snap.Seq == 0 {
		err = errStarting
	}
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

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	after, wait, err := waitOf(r)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", fewEvents)
	if err != nil {
		return err
	}
	limit = min(limit, maxEvents)
	events := s.engine.Events(after, int(limit))
	if len(events) == 0 && wait > 0 {
		ctx, cancel := s.patience(r, wait)
		defer cancel()
		if _, err := s.engine.WaitEvents(ctx, after); err != nil && ctx.Err() == nil {
			return err
		}
		events = s.engine.Events(after, int(limit))
	}
	list := EventList{Last: after, Events: append([]drivebay.Event{}, events...)}
	if len(events) > 0 {
		list.Last = events[len(events)-1].Seq
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// patience returns a context that ends with the request, after the time to wait, or with the
// daemon.
func (s *Server) patience(r *http.Request, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	undo := context.AfterFunc(s.stopping, cancel)
	return ctx, func() { undo(); cancel() }
}

func waitOf(r *http.Request) (after uint64, wait time.Duration, err error) {
	if after, err = number(r, "after", 0); err != nil {
		return 0, 0, err
	}
	if text := r.URL.Query().Get("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			return 0, 0, fmt.Errorf("wait=%q: %w: want a time such as 30s", text, drivebay.ErrInvalid)
		}
	}
	return after, min(wait, maxWait), nil
}

func number(r *http.Request, name string, otherwise uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%q: %w: want a whole number", name, text, drivebay.ErrInvalid)
	}
	return n, nil
}
