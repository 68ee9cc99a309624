package drivemgr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// find returns the drive of Snapshot.Find, or an error that names it.
func (m *fleetT) find(what string) (*drivebay.Drive, error) {
	if d, ok := m.Snapshot().Find(what); ok {
		return d, nil
	}
	return nil, fmt.Errorf("drive %q: %w", what, drivebay.ErrNotFound)
}

// ask runs f, which reads from a drive, in the drive's lane, for at most LookTimeout.
func ask[T any](ctx context.Context, m *fleetT, what string, f func(context.Context, *drivebay.Drive) (T, error)) (T, error) {
	var (
		zero    T
		l       *lane.Lane
		timeout time.Duration
	)
	d, err := m.find(what)
	if err != nil {
		return zero, err
	}
	err = m.do(ctx, func() error {
		t := m.drives[d.ID]
		if t == nil || !t.present {
			return fmt.Errorf("drive %s: %w: it is offline", d.ID, drivebay.ErrNotFound)
		}
		l, timeout = t.lane, m.opt.LookTimeout
		return nil
	})
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := lane.Through(ctx, l, m.machine, func(ctx context.Context) (T, error) { return f(ctx, d) })
	if err != nil {
		return zero, fmt.Errorf("drive %s: %w", d.ID, translate(err))
	}
	return out, nil
}

// Refresh lists the machine now, and starts looks at all drives that read their content.
func (m *trackingT) Refresh(ctx context.Context) error {
	var opt InventoryOptions
	if err := m.do(ctx, func() error { opt.Loop, opt.Ours = m.opt.Loop, m.ours(); return nil }); err != nil {
		return err
	}
	l := m.listMachine(ctx, opt)
	return m.do(ctx, func() error {
		m.applyListing(l)
		for _, t := range m.drives {
			t.fresh, t.nextLook = true, m.machine.Now()
		}
		return nil
	})
}

// Written starts a look that reads a drive again after drivebay wrote to it: the first or
// last partition of a table changes what the drive can be used for.
func (m *pollT) Written(ctx context.Context, drive string) error {
	return m.do(ctx, func() error {
		if t := m.drives[drive]; t != nil {
			t.fresh, t.written, t.nextLook = true, true, m.machine.Now()
		}
		return nil
	})
}

// AwaitReread waits until every drive named to Written has been looked at since, and reports
// whether there was one.
func (m *pollT) AwaitReread(ctx context.Context) (waited bool, err error) {
	done := make(chan struct{})
	err = m.do(ctx, func() error {
		if waited = m.rereads(); waited {
			m.rereadDone = append(m.rereadDone, done)
		} else {
			close(done)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	select {
	case <-done:
		return waited, nil
	case <-ctx.Done():
		return waited, ctx.Err()
	}
}

// rereads reports whether a drive to which drivebay wrote is still to be looked at. A drive
// that is gone is not waited for.
func (m *pollT) rereads() bool {
	for _, t := range m.drives {
		if t.present && (t.written || t.rereading && t.looking) {
			return true
		}
	}
	return false
}

// answerRereads ends the calls of AwaitReread once the snapshot shows all drives.
func (m *pollT) answerRereads() {
	if len(m.rereadDone) == 0 || m.rereads() {
		return
	}
	for _, done := range m.rereadDone {
		close(done)
	}
	m.rereadDone = nil
}

// Pages reads all pages of a drive now and returns them undecoded.
func (m *pollT) Pages(ctx context.Context, drive string) ([]drivebay.RawPage, error) {
	return ask(ctx, m.fleetT, drive, func(ctx context.Context, d *drivebay.Drive) ([]drivebay.RawPage, error) {
		return rawPages(ctx, m.machine, d)
	})
}

// Locate turns the light of a bay on or off, and reads it back.
func (m *lightsT) Locate(ctx context.Context, bay string, on bool) error {
	b, err := m.findBay(bay)
	if err != nil {
		return err
	}
	if b.Locate == "" {
		return fmt.Errorf("bay %s: %w: it has no light that the kernel can reach; drive %q", b.Bay, drivebay.ErrNoSupport, b.Drive)
	}
	want := map[bool]string{true: "1", false: "0"}[on]
	if err := m.machine.WriteFile(b.Locate, []byte(want)); err != nil {
		return fmt.Errorf("bay %s: light: %w", b.Bay, translate(err))
	}
	is, err := m.machine.ReadFile(b.Locate)
	if err != nil {
		return fmt.Errorf("bay %s: read the light back: %w", b.Bay, translate(err))
	}
	if got := strings.TrimSpace(string(is)) != "0"; got != on {
		return fmt.Errorf("bay %s: the light was set to %s and reads back %q", b.Bay, want, strings.TrimSpace(string(is)))
	}
	at := m.nextMoment()
	return m.do(ctx, func() error {
		m.light(b.Locate, b.Slot).wanted = on
		m.noteLight(b.Locate, b.Slot, on, at)
		m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventLocate, Drive: b.Drive, To: want, Cause: "an operator set the light of bay " + b.Bay})
		return nil
	})
}

// findBay finds a bay by its name or by the drive in it.
func (m *fleetT) findBay(what string) (drivebay.Bay, error) {
	s := m.Snapshot()
	if b, ok := s.FindBay(what); ok {
		return *b, nil
	}
	if d, ok := s.Find(what); ok && d.Slot.Bay != "" {
		return drivebay.Bay{Slot: d.Slot, Drive: d.ID}, nil
	}
	return drivebay.Bay{}, fmt.Errorf("bay %q: %w", what, drivebay.ErrNotFound)
}

// Acknowledge accepts a drive's current finding: it counts again when it grows. Code ""
// accepts all findings that can be accepted.
func (m *pollT) Acknowledge(ctx context.Context, drive, code string) error {
	return m.change(ctx, drive, func(t *tracked) error {
		memory, err := health.Acknowledge(t.rec.Memory, code)
		if err != nil {
			return fmt.Errorf("drive %s: %w", t.drive.ID, err)
		}
		t.rec.Memory = memory
		m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventAcknowledge, Drive: t.drive.ID, From: code, Cause: "an operator acknowledged the finding"})
		m.assess(t)
		return nil
	})
}

// Cordon keeps new volumes off a drive, or allows them again.
func (m *pollT) Cordon(ctx context.Context, drive string, on bool) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if t.rec.Cordoned == on {
			return nil
		}
		t.rec.Cordoned, t.drive.Cordoned = on, on
		m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventCordon, Drive: t.drive.ID, To: fmt.Sprint(on), Cause: "an operator asked for it"})
		return nil
	})
}

// change runs f on one drive in the goroutine that owns it, and stores the record.
func (m *fleetT) change(ctx context.Context, drive string, f func(*tracked) error) error {
	d, err := m.find(drive)
	if err != nil {
		return err
	}
	if err := m.keeper.unread(); err != nil {
		return fmt.Errorf("drive %s (%s): %w: %s", d.ID, d.Name, drivebay.ErrRefused, unreadRecords(err))
	}
	return m.do(ctx, func() error {
		t := m.drives[d.ID]
		if t == nil {
			return fmt.Errorf("drive %q: %w", drive, drivebay.ErrNotFound)
		}
		if err := f(t); err != nil {
			return err
		}
		m.keepRecord(t)
		return nil
	})
}

// Events returns events after a sequence number, oldest first.
func (m *Manager) Events(after uint64, limit int) []drivebay.Event {
	out, _ := m.keeper.since(after, limit)
	return out
}

// WaitEvents returns the events after a sequence number and waits for the first.
func (m *Manager) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	for {
		out, grew := m.keeper.since(after, 0)
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// translate maps the errors of package host to those of package drivebay.
func translate(err error) error {
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
