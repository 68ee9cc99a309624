package drivebay

import "errors"

// Errors that other packages test for. CSI, CSI-Addons and the HTTP API translate them
// into their own codes.
var (
	ErrNotFound   = errors.New("not found")
	ErrAmbiguous  = errors.New("ambiguous")
	ErrInvalid    = errors.New("invalid")
	ErrBusy       = errors.New("busy")
	ErrPending    = errors.New("another call for it is under way")
	ErrExists     = errors.New("already exists, and differs")
	ErrNoSpace    = errors.New("not enough space")
	ErrRange      = errors.New("out of range")
	ErrNoSupport  = errors.New("not supported")
	ErrPermission = errors.New("permission denied")
	ErrRefused    = errors.New("refused") // the operation would endanger data, or a rule forbids it
	ErrSecret     = errors.New("not the right secret")
	ErrTimeout    = errors.New("no answer in time")
	// ErrUnavailable: the answer depends on a drive that is missing, or was not read yet.
	ErrUnavailable = errors.New("unavailable")
)
