package lvm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// What a command of lvm can fail with. Every one comes wrapped in an Error with
// lvm's own words.
var (
	ErrNoSpace   = errors.New("not enough free space")
	ErrExists    = errors.New("exists already")
	ErrNotFound  = fmt.Errorf("lvm: %w", drivebay.ErrNotFound)
	ErrInUse     = fmt.Errorf("in use: %w", drivebay.ErrBusy)
	ErrLocked    = fmt.Errorf("locked: %w", drivebay.ErrBusy)
	ErrMissingPV = errors.New("a physical volume is missing")
	ErrForeign   = fmt.Errorf("not ours: %w", drivebay.ErrRefused)
	ErrUnknown   = errors.New("lvm failed")
)

// Error is a command of lvm that failed.
type Error struct {
	Command string // "lvcreate"
	Code    int    // lvm(8), "DIAGNOSTICS"
	Kind    error  // one of the above
	Text    string // lvm's words
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v: %s", e.Command, e.Kind, e.Text) }

func (e *Error) Unwrap() error { return e.Kind }

// phrases are what lvm 2.03.16 says, met in this order. Its exit status is 5 for
// every failure, 3 for words it does not understand.
var phrases = []struct {
	text string
	kind error
}{
	{"nsufficient free space", ErrNoSpace},
	{"nsufficient suitable", ErrNoSpace},
	{"No extents available for allocation", ErrNoSpace},
	{"not enough space in metadata area", ErrNoSpace},
	{"VG metadata too large", ErrNoSpace},
	{"already exists", ErrExists},
	{"is already in volume group", ErrExists},
	{"contains a filesystem in use", ErrInUse},
	{"is used by another device", ErrInUse},
	{"in use", ErrInUse},
	{"Can't open", ErrInUse}, // exclusively: mounted, or held by another driver
	{"still contains", ErrInUse},
	{"Do you really want to remove volume group", ErrInUse}, // it holds volumes, and nobody answers
	{"signature detected", ErrForeign},
	{"without -ff", ErrForeign},
	{"Cannot access VG", ErrForeign}, // of another system id
	{"is exported", ErrForeign},
	{"while PVs are missing", ErrMissingPV},
	{"PVs are missing", ErrMissingPV},
	{"partial activation", ErrMissingPV},
	{"Couldn't find device", ErrMissingPV},
	{"Can't get lock", ErrLocked},
	{"Cannot process volume group", ErrNotFound},
	{"not found", ErrNotFound},
	{"Failed to find", ErrNotFound},
	{"No PV found", ErrNotFound},
	{"No device found", ErrNotFound},
	{"Cannot use", ErrNotFound}, // a device that is not in the list
	{"is locked", ErrLocked},
	{"Failed to lock", ErrLocked},
}

// classify makes an Error of what a program ended with.
func classify(command string, err error) error {
	var exit *host.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", command, drivebay.ErrTimeout, err)
	case !errors.As(err, &exit):
		return fmt.Errorf("%s: %w", command, err)
	}
	text := complaint(exit.Stderr)
	e := &Error{Command: command, Code: exit.Code, Kind: ErrUnknown, Text: text}
	for _, p := range phrases {
		if strings.Contains(text, p.text) {
			e.Kind = p.kind
			break
		}
	}
	return e
}

// complaint leaves out lvm's warnings: a lost drive is in those of every
// command, whatever that one failed with. A signature is said in a warning too.
func complaint(stderr string) string {
	var kept, all []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		all = append(all, line)
		if !strings.HasPrefix(line, "WARNING:") || strings.Contains(line, "signature detected") {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		kept = all
	}
	return strings.Join(kept, "; ")
}
