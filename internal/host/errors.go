package host

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong with a question to a drive, or with work on it.
var (
	// ErrUnsupported: the drive says that it does not know the question.
	ErrUnsupported = errors.New("not supported by the drive")
	// ErrStandby: the drive sleeps and the question would have woken it.
	ErrStandby = errors.New("drive is in standby")
	// ErrTimeout: no answer within the time that was given.
	ErrTimeout = errors.New("no answer in time")
	// ErrPermission: we may not ask.
	ErrPermission = errors.New("no permission")
	// ErrGone: there is no such device any more (ENXIO, ENODEV, ENOENT).
	ErrGone = errors.New("device is gone")
	// ErrBusy: somebody has it mounted, held or open.
	ErrBusy = errors.New("in use")
	// ErrUnreadable: the drive has answered that it cannot read that.
	ErrUnreadable = errors.New("cannot be read")
	// ErrInTheWay: something of another kind is at that place, or something is in it.
	ErrInTheWay = errors.New("something else is there")
	// ErrNotMounted: there is nothing mounted at that place.
	ErrNotMounted = errors.New("not mounted")
	// ErrEscape: a link is in the way, or the path leads out of its root.
	ErrEscape = errors.New("path leaves its root")
	// ErrNotHere: this machine cannot do that at all (a recording has no uevents).
	ErrNotHere = errors.New("not possible on this machine")
)

// ExitError is a program that ran and did not end with 0.
type ExitError struct {
	Argv   []string
	Code   int // -1 when a signal ended it
	Stderr string
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s: exit status %d", e.Argv[0], e.Code)
	if e.Stderr != "" {
		text += ": " + strings.TrimSpace(e.Stderr)
	}
	return text
}
