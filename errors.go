package drivebay

import "errors"

// Errors that cross a package border. Edges turn them into their own codes.
var (
	ErrNotFound   = errors.New("not found")
	ErrAmbiguous  = errors.New("ambiguous")
	ErrInvalid    = errors.New("invalid")
	ErrBusy       = errors.New("busy")
	ErrNoSupport  = errors.New("not supported")
	ErrPermission = errors.New("permission denied")
	ErrRefused    = errors.New("refused") // it would endanger data, or a rule forbids it
	ErrTimeout    = errors.New("no answer in time")
)
