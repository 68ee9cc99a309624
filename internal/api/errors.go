package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/drivebay/drivebay"
)

// codes maps the errors of package drivebay to HTTP status and code, and back.
var codes = []struct {
	err    error
	status int
	code   string
}{
	{drivebay.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"}, // first: a missing drive matches both
	{drivebay.ErrNotFound, http.StatusNotFound, "not_found"},
	{drivebay.ErrAmbiguous, http.StatusConflict, "ambiguous"},
	{drivebay.ErrInvalid, http.StatusBadRequest, "invalid"},
	{drivebay.ErrPending, http.StatusConflict, "pending"},
	{drivebay.ErrExists, http.StatusConflict, "exists"},
	{drivebay.ErrNoSpace, http.StatusInsufficientStorage, "no_space"},
	{drivebay.ErrRange, http.StatusBadRequest, "out_of_range"}, // not 416: that answers a Range header (RFC 9110, 15.5.17)
	{drivebay.ErrBusy, http.StatusConflict, "busy"},
	{drivebay.ErrRefused, http.StatusConflict, "refused"},
	{drivebay.ErrNoSupport, http.StatusNotImplemented, "not_supported"},
	{drivebay.ErrPermission, http.StatusForbidden, "permission_denied"},
	{drivebay.ErrSecret, http.StatusForbidden, "wrong_secret"}, // not 401: requests a login (RFC 9110, 15.5.2)
	{drivebay.ErrTimeout, http.StatusGatewayTimeout, "timeout"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout"},
}

// Error is an error as the API transmits it. It unwraps to the error of package drivebay with its
// code.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the error of package drivebay with this code.
func (e *Error) Unwrap() error {
	for _, c := range codes {
		if c.code == e.Code {
			return c.err
		}
	}
	return nil
}

// errorBody is the body of every error.
type errorBody struct {
	Error *Error `json:"error"`
}

var errUnread = failf(http.StatusServiceUnavailable, "starting", "not all drives have been read yet")

var errStarting = failf(http.StatusServiceUnavailable, "starting", "the drives of the machine have not been listed yet")

var errReadOnly = failf(http.StatusForbidden, "read_only", "this address is for reading only: use the daemon's unix socket")

var errMember = failf(http.StatusForbidden, "read_only", "members of the socket's group may only read: use sudo")

func failf(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// codeOf returns the HTTP status and the code of an error.
func codeOf(err error) (int, string) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status, e.Code
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.status, c.code
		}
	}
	return http.StatusInternalServerError, "internal"
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, errorBody{&Error{Code: code, Message: message}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer cannot be encoded"}}`)
	}
	writeBody(w, status, body)
}

// writeBody sends an answer. It ignores errors, because the caller may have disconnected.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
