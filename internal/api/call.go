package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/drivebay/drivebay"
)

// act reads the body, calls do with it, and answers 204.
func act[B any](w http.ResponseWriter, r *http.Request, do func(context.Context, B) error) error {
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

func (b switchBody) value() (bool, error) {
	if b.On == nil {
		return false, fmt.Errorf("on: %w: want true or false", drivebay.ErrInvalid)
	}
	return *b.On, nil
}

// work reads the body, calls the engine, and answers with the result, or with 204. If the work
// takes longer than the request may, the answer is pending, and the same call again waits for the
// end of the work.
func work[B any](s volumeHandlers, w http.ResponseWriter, r *http.Request, do func(context.Context, Volumes, B) (any, error)) error {
	engine, err := s.engineOfVolumes()
	if err != nil {
		return err
	}
	var body B
	if err := readBody(r, &body); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), opTimeout)
	defer cancel()
	answer, err := do(ctx, engine, body)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", drivebay.ErrPending, err)
	case err != nil:
		return err
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, answer)
	}
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
