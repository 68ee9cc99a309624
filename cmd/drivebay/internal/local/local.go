// Package local reads the drives of a machine without a daemon.
package local

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/assess"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hardware"
)

// Machine is a machine whose drives are read without a daemon. Reading needs no engine; what asks or
// changes a drive starts one for as long as that takes.
type Machine struct {
	machine host.Machine
	opt     drivemgr.Options
	seen    *drivebay.Snapshot // the last snapshot
}

// This returns this machine.
func This() (*Machine, error) { return open(host.Real("/")) }

// Recorded returns the machine that is recorded in a folder that holds sys/, drivebay's recording or not.
func Recorded(root string) (*Machine, error) { return open(host.Recorded(root)) }

func open(m host.Machine, err error) (*Machine, error) {
	if err != nil {
		return nil, err
	}
	opt := drivemgr.DefaultOptions()
	opt.Hardware, _ = hardware.Read(m) // a machine that cannot be named is still read
	return &Machine{machine: m, opt: opt}, nil
}

// Seen returns the last snapshot; nil: none was made.
func (l *Machine) Seen() *drivebay.Snapshot { return l.seen }

// Drives reads the machine.
func (l *Machine) Drives(ctx context.Context) (*drivebay.Snapshot, error) {
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
func (l *Machine) look(ctx context.Context) (*drivebay.Snapshot, error) {
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
func (l *Machine) Drive(ctx context.Context, what string) (*drivebay.Drive, error) {
	if l.seen == nil {
		if _, err := l.look(ctx); err != nil {
			return nil, err
		}
	}
	return l.seen.Resolve(what)
}

// Wait reads the machine again after a tick: without a daemon no change is reported.
func (l *Machine) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
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
func (l *Machine) with(ctx context.Context, f func(context.Context, *drivemgr.Manager) error) error {
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

func (l *Machine) Pages(ctx context.Context, drive string) (pages []drivebay.RawPage, err error) {
	err = l.with(ctx, func(ctx context.Context, m *drivemgr.Manager) error {
		pages, err = m.Pages(ctx, drive)
		return err
	})
	return pages, err
}

func (l *Machine) SelfTest(ctx context.Context, drive, kind string) error {
	return l.with(ctx, func(ctx context.Context, m *drivemgr.Manager) error { return m.SelfTest(ctx, drive, kind) })
}

func (l *Machine) Locate(ctx context.Context, bay string, on bool) error {
	return l.with(ctx, func(ctx context.Context, m *drivemgr.Manager) error { return m.Locate(ctx, bay, on) })
}

// needsDaemon returns the error of calls that need the records of the daemon.
func needsDaemon(what string) error {
	return fmt.Errorf("%s: %w without the daemon: only the daemon has records", what, drivebay.ErrNoSupport)
}

func (l *Machine) Events(context.Context, uint64, int) ([]drivebay.Event, error) {
	return nil, needsDaemon("events")
}

func (l *Machine) WaitEvents(context.Context, uint64) ([]drivebay.Event, error) {
	return nil, needsDaemon("events")
}

func (l *Machine) Acknowledge(context.Context, string, string) error {
	return needsDaemon("acknowledge")
}

func (l *Machine) Cordon(context.Context, string, bool) error { return needsDaemon("cordon") }
func (l *Machine) Operate(_ context.Context, _ string, do drivebay.LeaveVerb, _ string) error {
	return needsDaemon(string(do))
}
func (l *Machine) Claim(context.Context, string, bool) error { return needsDaemon("claim") }

func (l *Machine) Refresh(context.Context) error { return needsDaemon("refresh") }

// Subjects returns the drives of a recorded machine for an assessment. They are judged as of the time of the
// recording.
func Subjects(ctx context.Context, dir string, th health.Thresholds) ([]assess.Subject, error) {
	machine, err := host.Recorded(dir)
	if err != nil {
		return nil, err
	}
	opt := drivemgr.DefaultOptions()
	opt.Thresholds = th
	s, err := drivemgr.ReadOnce(ctx, machine, opt)
	if err != nil {
		return nil, err
	}
	var out []assess.Subject
	for _, d := range render.Order(s.Drives) {
		out = append(out, assess.Subject{
			Name: d.Name, Serial: d.Serial, Model: d.Model,
			Input: health.Input{Evidence: d.Evidence, Kernel: d.Kernel, Type: d.Type, Transport: d.Transport, Protocol: d.Protocol, Now: s.At},
		})
	}
	return out, nil
}
