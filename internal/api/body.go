package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/drivebay/drivebay"
)

// receiveBody reads the body of a request before any handler runs, on every route: net/http
// waits for the rest of a body that no handler reads. Its ReadTimeout cannot bound that,
// because it also ends a long poll (the background read of net/http cancels the request).
// A body that is too large or too slow ends the connection with the answer.
func receiveBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	// Not every ResponseWriter has deadlines; the server's own does.
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		// The deadline stays set: net/http reads the rest of the body before it answers.
		w.Header().Set("Connection", "close")
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return failf(http.StatusRequestEntityTooLarge, "invalid", "the body is larger than %d bytes", maxBody)
		}
		return fmt.Errorf("read the body: %w: %w", drivebay.ErrInvalid, err)
	}
	_ = c.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
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
	return decodeStrict(body, into)
}

// decodeStrict decodes exactly one JSON value and rejects unknown fields.
func decodeStrict(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("body: %w: %w", drivebay.ErrInvalid, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("body: %w: more than one JSON value", drivebay.ErrInvalid)
	}
	return nil
}
