package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drivebay/drivebay"
)

// source is where a command gets its answers: the daemon, or a machine that the command
// reads itself.
type source interface {
	Drives(ctx context.Context) (*drivebay.Snapshot, error) // without the evidence
	Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	Drive(ctx context.Context, what string) (*drivebay.Drive, error)
	Events(ctx context.Context, after uint64, limit int) ([]drivebay.Event, error)
	WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error)
	Pages(ctx context.Context, drive string) ([]drivebay.RawPage, error)
	SelfTest(ctx context.Context, drive, kind string) error
	Locate(ctx context.Context, bay string, on bool) error
	Acknowledge(ctx context.Context, drive, code string) error
	Cordon(ctx context.Context, drive string, on bool) error
	Claim(ctx context.Context, drive string, on bool) error
	Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error
	Refresh(ctx context.Context) error
}

// source returns the source that the flags name.
func (a *app) source() (source, error) {
	switch {
	case a.local && a.root != "":
		return nil, usage("--local and --root cannot be used together")
	case a.local:
		return lookAtThis()
	case a.root != "":
		return lookAtRecorded(a.root)
	}
	return a.dial(), nil
}

// find returns the drive that what names: see Snapshot.Lookup. For work that cannot be undone, whole
// refuses the beginning of a name. The error of an unknown name lists near matches.
func find(s *drivebay.Snapshot, what string, whole bool) (*drivebay.Drive, error) {
	resolve := s.Resolve
	if whole {
		resolve = s.ResolveWhole
	}
	d, err := resolve(deviceOf(what))
	if !errors.Is(err, drivebay.ErrNotFound) {
		return d, err
	}
	return nil, unknownDrive(s, what)
}

// deviceOf returns the device that a link below /dev leads to, for example one below
// /dev/disk/by-path. Names of by-id links are known without the link: it may be on another machine.
func deviceOf(what string) string {
	if !strings.HasPrefix(what, "/dev/disk/") || strings.HasPrefix(what, "/dev/disk/by-id/") {
		return what
	}
	if device, err := filepath.EvalSymlinks(what); err == nil {
		return device
	}
	return what
}

// unknownDrive returns the error of a text that names no drive.
func unknownDrive(s *drivebay.Snapshot, what string) error {
	var near []string
	word := strings.ToLower(strings.TrimPrefix(what, "/dev/"))
	for i := range s.Drives {
		d := &s.Drives[i]
		text := strings.ToLower(strings.Join([]string{d.ID, d.Name, d.Serial, d.WWN, d.Slot.Bay}, " "))
		if word != "" && strings.Contains(text, word) {
			near = append(near, fmt.Sprintf("%s (%s)", d.ID, d.Name))
		}
	}
	switch {
	case len(s.FindBays(what)) == 1:
		return fmt.Errorf("bay %q: %w: the bay is empty, and no drive that was in it is known", what, drivebay.ErrNotFound)
	case len(near) == 0 && len(s.Drives) == 0:
		return fmt.Errorf("drive %q: %w: this machine has no drives", what, drivebay.ErrNotFound)
	case len(near) == 0:
		return fmt.Errorf("drive %q: %w: `drivebay drives` lists the drives; give a bay, a name, a serial number, a WWN or an ID", what, drivebay.ErrNotFound)
	case len(near) > maxNear:
		near = append(near[:maxNear], "...")
	}
	return fmt.Errorf("drive %q: %w: did you mean one of these? %s", what, drivebay.ErrAmbiguous, strings.Join(near, ", "))
}

// maxNear is how many near matches an error lists.
const maxNear = 8

// pick returns the source and the drive that an argument names.
func (a *app) pick(ctx context.Context, what string) (source, *drivebay.Drive, error) {
	return a.pickDrive(ctx, what, false)
}

// pickDrive does what pick does; with whole, what must not be the beginning of a name.
func (a *app) pickDrive(ctx context.Context, what string, whole bool) (source, *drivebay.Drive, error) {
	src, err := a.source()
	if err != nil {
		return nil, nil, err
	}
	s, err := src.Drives(ctx)
	if err != nil {
		return nil, nil, err
	}
	d, err := find(s, what, whole)
	return src, d, err
}

// drive does what pick does, and reads the drive with its evidence.
func (a *app) drive(ctx context.Context, what string) (source, *drivebay.Drive, error) {
	src, d, err := a.pick(ctx, what)
	if err != nil {
		return nil, nil, err
	}
	d, err = src.Drive(ctx, d.ID)
	return src, d, err
}
