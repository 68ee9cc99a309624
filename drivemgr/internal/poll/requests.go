package poll

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/health"
)

// Written schedules a reading of a drive after drivebay wrote to it: the first or last partition
// of a table changes what the drive can be used for.
func (m *Poller) Written(ctx context.Context, drive string) error {
	return m.State.Do(ctx, func() error {
		if t := m.State.Drives[drive]; t != nil {
			t.Fresh, t.Written, t.NextReading = true, true, m.State.Machine.Now()
		}
		return nil
	})
}

// AwaitReread waits until every drive named to Written has been read since, and reports
// whether there was one.
func (m *Poller) AwaitReread(ctx context.Context) (waited bool, err error) {
	done := make(chan struct{})
	err = m.State.Do(ctx, func() error {
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

// rereads reports whether a drive to which drivebay wrote is still to be read. A drive
// that is gone is not waited for.
func (m *Poller) rereads() bool {
	for _, t := range m.State.Drives {
		if t.Present && (t.Written || t.Rereading && t.Reading) {
			return true
		}
	}
	return false
}

// AnswerRereads ends the calls of AwaitReread once the snapshot shows all drives.
func (m *Poller) AnswerRereads() {
	if len(m.rereadDone) == 0 || m.rereads() {
		return
	}
	for _, done := range m.rereadDone {
		close(done)
	}
	m.rereadDone = nil
}

// Pages reads all pages of a drive now and returns them undecoded.
func (m *Poller) Pages(ctx context.Context, drive string) ([]drivebay.RawPage, error) {
	return state.Ask(ctx, m.State, drive, func(ctx context.Context, d *drivebay.Drive) ([]drivebay.RawPage, error) {
		return evidence.RawPages(ctx, m.State.Machine, d)
	})
}

// Acknowledge accepts a drive's current finding: it counts again when it grows. Code ""
// accepts all findings that can be accepted.
func (m *Poller) Acknowledge(ctx context.Context, drive, code string) error {
	return m.State.Command(ctx, drive, func(t *state.Tracked) error {
		memory, err := health.Acknowledge(t.Rec.Memory, code)
		if err != nil {
			return fmt.Errorf("drive %s: %w", t.Drive.ID, err)
		}
		t.Rec.Memory = memory
		m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventAcknowledge, Drive: t.Drive.ID, From: code, Cause: "an operator acknowledged the finding"})
		m.Assess(t)
		return nil
	})
}

// Cordon keeps new volumes off a drive, or allows them again.
func (m *Poller) Cordon(ctx context.Context, drive string, on bool) error {
	return m.State.Command(ctx, drive, func(t *state.Tracked) error {
		if t.Rec.Cordoned == on {
			return nil
		}
		t.Rec.Cordoned, t.Drive.Cordoned = on, on
		m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventCordon, Drive: t.Drive.ID, To: fmt.Sprint(on), Cause: "requested by an operator"})
		return nil
	})
}
