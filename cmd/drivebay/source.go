package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// source is where a command gets its answers: the daemon, or a machine that we
// look at ourselves.
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
	Lead(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error
	Refresh(ctx context.Context) error
}

// source picks the source that the flags name.
func (a *app) source() (source, error) {
	switch {
	case a.local && a.root != "":
		return nil, usage("--local and --root exclude each other")
	case a.local:
		return lookAtThis()
	case a.root != "":
		return lookAtRecorded(a.root)
	}
	return api.Dial(a.api), nil
}

// find finds the drive that somebody means, or says which he may mean.
func find(s *drivebay.Snapshot, what string) (*drivebay.Drive, error) {
	if d, ok := s.Find(what); ok {
		return d, nil
	}
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
	case len(near) == 0 && len(s.Drives) == 0:
		return nil, fmt.Errorf("drive %q: %w: there is no drive at all", what, drivebay.ErrNotFound)
	case len(near) == 0:
		return nil, fmt.Errorf("drive %q: %w: `drivebay drives` lists them; give an id, a name, a serial or a WWN", what, drivebay.ErrNotFound)
	case len(near) > maxNear:
		near = append(near[:maxNear], "...")
	}
	return nil, fmt.Errorf("drive %q: %w: did you mean one of these? %s", what, drivebay.ErrAmbiguous, strings.Join(near, ", "))
}

// maxNear is how many near matches an error lists.
const maxNear = 8

// pick finds the drive that an argument means.
func (a *app) pick(ctx context.Context, what string) (source, *drivebay.Drive, error) {
	src, err := a.source()
	if err != nil {
		return nil, nil, err
	}
	s, err := src.Drives(ctx)
	if err != nil {
		return nil, nil, err
	}
	d, err := find(s, what)
	return src, d, err
}

// drive is pick, and the drive comes with its evidence.
func (a *app) drive(ctx context.Context, what string) (source, *drivebay.Drive, error) {
	src, d, err := a.pick(ctx, what)
	if err != nil {
		return nil, nil, err
	}
	d, err = src.Drive(ctx, d.ID)
	return src, d, err
}
