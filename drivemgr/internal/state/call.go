package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/records"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// Find returns the drive that a text names as a whole. A caller that has the id of a drive whose
// record is gone never gets a drive whose id begins with it.
func (m *State) Find(what string) (*drivebay.Drive, error) {
	return m.Snapshot().ResolveWhole(what)
}

// Ask runs f, which reads from a drive, in the drive's lane, for at most ReadTimeout.
func Ask[T any](ctx context.Context, m *State, what string, f func(context.Context, *drivebay.Drive) (T, error)) (T, error) {
	var (
		zero    T
		l       *lane.Lane
		timeout time.Duration
	)
	d, err := m.Find(what)
	if err != nil {
		return zero, err
	}
	err = m.Do(ctx, func() error {
		t := m.Drives[d.ID]
		if t == nil || !t.Present {
			return fmt.Errorf("drive %s: %w: the drive is OFFLINE", d.ID, drivebay.ErrNotFound)
		}
		l, timeout = t.Lane, m.Opt.ReadTimeout
		return nil
	})
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := lane.Through(ctx, l, m.Machine, func(ctx context.Context) (T, error) { return f(ctx, d) })
	if err != nil {
		return zero, fmt.Errorf("drive %s: %w", d.ID, Translate(err))
	}
	return out, nil
}

// FindBay finds a bay by its name or by the drive in it.
func (m *State) FindBay(what string) (drivebay.Bay, error) {
	s := m.Snapshot()
	if b, ok := s.FindBay(what); ok {
		return *b, nil
	}
	if d, ok := s.Find(what); ok && d.Slot.Bay != "" {
		return drivebay.Bay{Slot: d.Slot, Drive: d.ID}, nil
	}
	return drivebay.Bay{}, fmt.Errorf("bay %q: %w", what, drivebay.ErrNotFound)
}

// Change runs f on one drive in the goroutine that owns it, and stores the record.
func (m *State) Change(ctx context.Context, drive string, f func(*Tracked) error) error {
	d, err := m.Find(drive)
	if err != nil {
		return err
	}
	if err := m.Keeper.Unread(); err != nil {
		return fmt.Errorf("drive %s (%s): %w: %s", d.ID, d.Name, drivebay.ErrRefused, records.UnreadRecords(err))
	}
	return m.Do(ctx, func() error {
		t := m.Drives[d.ID]
		if t == nil {
			return fmt.Errorf("drive %q: %w", drive, drivebay.ErrNotFound)
		}
		if err := f(t); err != nil {
			return err
		}
		m.KeepRecord(t)
		return nil
	})
}

// Command is Change for a command of an operator: it returns once the record is stored. A daemon that starts after a loss of power has to know
// of it: it would write to a drive whose claim was withdrawn.
func (m *State) Command(ctx context.Context, drive string, f func(*Tracked) error) error {
	if err := m.Change(ctx, drive, f); err != nil {
		return err
	}
	return m.Stored(ctx, drive)
}

// Stored waits until the changes of a drive are stored.
func (m *State) Stored(ctx context.Context, drive string) error {
	if err := m.Keeper.Stored(ctx, m.Machine); err != nil {
		return fmt.Errorf("drive %s: %w: the command is carried out but not stored, and is lost if drivebay ends before the record store can be written: %w; repair the disk of the state directory and check the drive", drive, drivebay.ErrUnavailable, err)
	}
	return nil
}

// Translate maps the errors of package host to those of package drivebay.
func Translate(err error) error {
	for _, pair := range []struct{ from, to error }{
		{host.ErrUnsupported, drivebay.ErrNoSupport},
		{host.ErrImpossible, drivebay.ErrNoSupport},
		{host.ErrStandby, drivebay.ErrBusy},
		{host.ErrTimeout, drivebay.ErrTimeout},
		{host.ErrPermission, drivebay.ErrPermission},
		{host.ErrGone, drivebay.ErrNotFound},
	} {
		if errors.Is(err, pair.from) {
			return fmt.Errorf("%w: %w", pair.to, err)
		}
	}
	return err
}

// Call is a function to be run in the goroutine that owns the state.
type Call struct {
	Do   func() error
	Done chan error
}

// Do runs f in the goroutine that owns the state and waits until the snapshot shows
// its changes.
func (m *State) Do(ctx context.Context, f func() error) error {
	c := Call{f, make(chan error, 1)}
	select {
	case m.Calls <- c:
		return <-c.Done
	case <-ctx.Done():
		return ctx.Err()
	}
}
