package host

import (
	"errors"
	"fmt"
	"strings"
)

// The errors of a query to a drive, or of work on it.
var (
	// ErrUnsupported: the drive reports that it does not support the query.
	ErrUnsupported = errors.New("not supported by the drive")
	// ErrStandby: the drive is in standby and the query would have woken it.
	ErrStandby = errors.New("drive is in standby")
	// ErrTimeout: no answer within the given time.
	ErrTimeout = errors.New("no answer in time")
	// ErrPermission: access is denied.
	ErrPermission = errors.New("no permission")
	// ErrGone: the device does not exist any more (ENXIO, ENODEV, ENOENT).
	ErrGone = errors.New("device is gone")
	// ErrIO: a device, or what is below it, has answered with an input/output error (EIO).
	ErrIO = errors.New("the device fails")
	// ErrBusy: it is mounted, held or open elsewhere.
	ErrBusy = errors.New("in use")
	// ErrUnreadable: the drive has answered that it cannot read the data.
	ErrUnreadable = errors.New("cannot be read")
	// ErrOccupied: the place holds a file of another kind, or one that is not empty.
	ErrOccupied = errors.New("another file is there")
	// ErrNotMounted: nothing is mounted at that place.
	ErrNotMounted = errors.New("not mounted")
	// ErrOutsideRoot: the path contains a link, or leads out of its root.
	ErrOutsideRoot = errors.New("path leaves its root")
	// ErrImpossible: this machine cannot do that at all (a recording has no uevents).
	ErrImpossible = errors.New("not possible on this machine")
)

// ExitError reports a program that ran and did not exit with 0.
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
