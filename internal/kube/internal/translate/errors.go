package translate

import (
	"context"
	"errors"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// codes holds the code of each error of the dictionary, for status.error. The first match counts, in
// the order of the CSI codes: an error for a missing drive matches ErrNotFound as well.
var codes = []struct {
	err  error
	code string
}{
	{drivebay.ErrUnavailable, "Unavailable"},
	{drivebay.ErrNotFound, "NotFound"},
	{drivebay.ErrInvalid, "Invalid"},
	{drivebay.ErrAmbiguous, "Ambiguous"},
	{drivebay.ErrNoSupport, "NoSupport"},
	{drivebay.ErrExists, "Exists"},
	{drivebay.ErrPending, "Pending"},
	{drivebay.ErrBusy, "Busy"},
	{drivebay.ErrRefused, "Refused"},
	{drivebay.ErrNoSpace, "NoSpace"},
	{drivebay.ErrRange, "Range"},
	{drivebay.ErrTimeout, "Timeout"},
	{drivebay.ErrPermission, "Permission"},
	{drivebay.ErrSecret, "Secret"},
	{context.DeadlineExceeded, "Timeout"},
	{context.Canceled, "Unavailable"}, // the daemon stops, and continues after its next start
}

// codeInternal is the code of an error that the dictionary does not have.
const codeInternal = "Internal"

// maxMessage is the length of a message in a status, in bytes.
const maxMessage = 1024

// ErrorOf returns an error of the engine as it is in a status; nil for nil.
func ErrorOf(err error) *v1alpha1.VolumeError {
	if err == nil {
		return nil
	}
	out := &v1alpha1.VolumeError{Code: codeInternal, Message: drivebay.PlainText(err.Error(), maxMessage)}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			out.Code = c.code
			break
		}
	}
	return out
}

// nodeError is an error that a node has reported.
type nodeError struct {
	text string
	kind error
}

func (e *nodeError) Error() string { return e.text }
func (e *nodeError) Unwrap() error { return e.kind }

// Error returns the error in a status: errors.Is finds the same error of the dictionary as on the node,
// and its text is the same. It is nil for nil.
func Error(e *v1alpha1.VolumeError) error {
	if e == nil {
		return nil
	}
	out := &nodeError{text: e.Message}
	for _, c := range codes {
		if c.code == e.Code {
			out.kind = c.err
			break
		}
	}
	if out.text == "" {
		out.text = e.Code
	}
	return out
}

// Transient reports whether the node tries again by itself after an error: its cause ends without a
// change of the spec. All other errors are answers, which a new call may change.
func Transient(e *v1alpha1.VolumeError) bool {
	switch e.Code {
	case "Unavailable", "Pending", "Timeout", codeInternal:
		return true
	}
	return false
}
