package main

import (
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/local"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/named"
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
		return asSource(local.This())
	case a.root != "":
		return asSource(local.Recorded(a.root))
	}
	return a.dial(), nil
}

func asSource(m *local.Machine, err error) (source, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// find returns the drive that what names: see Snapshot.Lookup. For work that cannot be undone, whole
// refuses the beginning of a name. The error of an unknown name lists near matches.
func find(s *drivebay.Snapshot, what string, whole bool) (*drivebay.Drive, error) {
	return named.Drive(s, what, whole)
}

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
