package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
