package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hardware"
)

// local is a source that reads the machine without a daemon. Reading needs no engine;
// what asks or changes a drive starts one for as long as that takes.
type local struct {
	machine host.Machine
	opt     drivemgr.Options
	seen    *drivebay.Snapshot // the last snapshot
}

func lookAtThis() (source, error) { return lookAt(host.Real("/")) }

// lookAtRecorded reads any folder that holds sys/ as a machine, drivebay's recording or not.
func lookAtRecorded(root string) (source, error) { return lookAt(host.Recorded(root)) }

func lookAt(m host.Machine, err error) (source, error) {
	if err != nil {
		return nil, err
	}
	opt := drivemgr.DefaultOptions()
	opt.Hardware, _ = hardware.Read(m) // a machine that cannot be named is still read
	return &local{machine: m, opt: opt}, nil
}

func (l *local) Drives(ctx context.Context) (*drivebay.Snapshot, error) {
	s, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	for i := range s.Drives {
		s.Drives[i].Evidence = nil // as the daemon lists them
	}
	return s, nil
}

// look reads the machine once and keeps the snapshot for Drive.
func (l *local) look(ctx context.Context) (*drivebay.Snapshot, error) {
	s, err := drivemgr.ReadOnce(ctx, l.machine, l.opt)
	if err != nil {
		return nil, fmt.Errorf("read the drives of the machine: %w", err)
	}
	l.seen = s
	own := *s
	own.Drives = slices.Clone(s.Drives)
	return &own, nil
}

// Drive returns a drive of the last snapshot.
func (l *local) Drive(ctx context.Context, what string) (*drivebay.Drive, error) {
	if l.seen == nil {
		if _, err := l.look(ctx); err != nil {
			return nil, err
		}
	}
	return find(l.seen, what, false)
}

// Wait reads the machine again after a tick: without a daemon no change is reported.
func (l *local) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	select {
	case <-l.machine.After(l.opt.Tick):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := l.Drives(ctx)
	if err == nil {
		s.Seq = after + 1
	}
	return s, err
}

// with runs an engine on the machine until f returns.
func (l *local) with(ctx context.Context, f func(context.Context, *drivemgr.Manager) error) error {
	ctx, stop := context.WithCancel(ctx)
	m := drivemgr.New(l.machine, nil, l.opt)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = m.Run(ctx) }()
	defer func() { stop(); <-ended }()
	if _, err := m.Wait(ctx, 0); err != nil {
		return err
	}
	return f(ctx, m)
}

func (l *local) Pages(ctx context.Context, drive string) (pages []drivebay.RawPage, err error) {
	err = l.with(ctx, func(ctx context.Context, m *drivemgr.Manager) error {
		pages, err = m.Pages(ctx, drive)
		return err
	})
	return pages, err
}

func (l *local) SelfTest(ctx context.Context, drive, kind string) error {
	return l.with(ctx, func(ctx context.Context, m *drivemgr.Manager) error { return m.SelfTest(ctx, drive, kind) })
}

func (l *local) Locate(ctx context.Context, bay string, on bool) error {
	return l.with(ctx, func(ctx context.Context, m *drivemgr.Manager) error { return m.Locate(ctx, bay, on) })
}

// needsDaemon returns the error of calls that need the records of the daemon.
func needsDaemon(what string) error {
	return fmt.Errorf("%s: %w without the daemon: only the daemon has records", what, drivebay.ErrNoSupport)
}

func (l *local) Events(context.Context, uint64, int) ([]drivebay.Event, error) {
	return nil, needsDaemon("events")
}

func (l *local) WaitEvents(context.Context, uint64) ([]drivebay.Event, error) {
	return nil, needsDaemon("events")
}

func (l *local) Acknowledge(context.Context, string, string) error { return needsDaemon("acknowledge") }

func (l *local) Cordon(context.Context, string, bool) error { return needsDaemon("cordon") }
func (l *local) Operate(_ context.Context, _ string, do drivebay.LeaveVerb, _ string) error {
	return needsDaemon(string(do))
}
func (l *local) Claim(context.Context, string, bool) error { return needsDaemon("claim") }

func (l *local) Refresh(context.Context) error { return needsDaemon("refresh") }
