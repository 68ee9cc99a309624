package lvm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// The errors of an LVM command. Each comes wrapped in an Error with the text of the
// command.
var (
	ErrNoSpace   = errors.New("not enough free space")
	ErrExists    = errors.New("already exists")
	ErrNotFound  = fmt.Errorf("lvm: %w", drivebay.ErrNotFound)
	ErrInUse     = fmt.Errorf("in use: %w", drivebay.ErrBusy)
	ErrLocked    = fmt.Errorf("locked: %w", drivebay.ErrPending) // the command that holds the lock ends
	ErrMissingPV = errors.New("a physical volume is missing")
	ErrForeign   = fmt.Errorf("does not belong to drivebay: %w", drivebay.ErrRefused)
	ErrUnknown   = errors.New("lvm failed")
)

// Error is the failure of an LVM command.
type Error struct {
	Command string // "lvcreate"
	Code    int    // lvm(8), "DIAGNOSTICS"
	Kind    error  // one of the above
	Text    string // printed by the command
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v: %s", e.Command, e.Kind, e.Text) }

func (e *Error) Unwrap() error { return e.Kind }

// phrases maps the messages of LVM 2.03.16 to errors; the first match counts. The exit
// status does not help: it is 5 for every failure, 3 for a command line it rejects.
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
	{"Do you really want to remove volume group", ErrInUse}, // the group has volumes, and LVM asks for a confirmation
	{"signature detected", ErrForeign},
	{"without -ff", ErrForeign},
	{"Cannot access VG", ErrForeign}, // of another system id
	{"is exported", ErrForeign},
	{"while PVs are missing", ErrMissingPV},
	{"PVs are missing", ErrMissingPV},
	{"partial activation", ErrMissingPV},
	{"of partial LV", ErrMissingPV},
	{"Couldn't find device", ErrMissingPV},
	{"Can't get lock", ErrLocked},
	{"Cannot process volume group", ErrNotFound},
	{"not found", ErrNotFound},
	{"Failed to find", ErrNotFound},
	{"No PV found", ErrNotFound},
	{"No device found", ErrNotFound},
	{"Cannot use PV", ErrForeign},         // of a foreign, exported or shared group
	{"device is partitioned", ErrForeign}, // "Cannot use DEVICE: REASON": dev_filtered_reason of lib/cache/lvmcache.c
	{"device has a signature", ErrForeign},
	{"device is an md component", ErrForeign},
	{"device is a multipath component", ErrForeign},
	{"device is an LV", ErrForeign},
	{"device has fs mounted", ErrInUse},
	{"device is too small", ErrNoSpace},
	{"device is not in devices", ErrNotFound}, // "list" or "file"
	{"is locked", ErrLocked},
	{"Failed to lock", ErrLocked},
}

// classify makes an Error from the error of a command.
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
	text := errorText(exit.Stderr)
	e := &Error{Command: command, Code: exit.Code, Kind: ErrUnknown, Text: text}
	for _, p := range phrases {
		if strings.Contains(text, p.text) {
			e.Kind = p.kind
			break
		}
	}
	return e
}

// errorText leaves out the warnings: every command prints those about a lost drive,
// whatever it failed with. It keeps the warning about a signature.
func errorText(stderr string) string {
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
