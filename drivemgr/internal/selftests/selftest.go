package selftests

import (
	"context"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/policy"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
)

// Starter starts self-tests.
type Starter struct {
	State *state.State
}

var families = map[drivebay.Protocol]host.Family{
	drivebay.ProtocolATA:  host.FamilyATA,
	drivebay.ProtocolNVMe: host.FamilyNVMe,
	drivebay.ProtocolSCSI: host.FamilySCSI,
}

// ScheduleSelfTests starts the self-tests that are due. A start that fails is not
// repeated before the next interval.
func (m *Starter) ScheduleSelfTests(ctx context.Context) {
	now := m.State.Machine.Now()
	if !m.State.Opt.SelfTests.Enabled || !m.State.Opt.SelfTests.Open(now) {
		return
	}
	var all []policy.Candidate
	for id, t := range m.State.Drives {
		ev := t.Drive.Evidence
		_, speaks := families[t.Drive.Protocol]
		all = append(all, policy.Candidate{
			ID: id, Running: t.Testing(now),
			Able:      t.Present && speaks && ev != nil && !ev.Standby && t.Failures == 0,
			LastShort: t.Rec.LastShort, LastLong: t.Rec.LastLong,
		})
	}
	for _, s := range m.State.Opt.SelfTests.Due(all, now) {
		m.State.Drives[s.ID].MarkSelfTest(s.Kind, now)
		go func() {
			if err := m.SelfTest(ctx, s.ID, string(s.Kind)); err != nil {
				m.State.Log.Warn("cannot start a scheduled self-test", "drive", s.ID, "op", "selftest", "err", err)
			}
		}()
	}
}

// SelfTest starts or aborts a self-test of a drive.
func (m *Starter) SelfTest(ctx context.Context, drive, kind string) error {
	k := host.SelfTestKind(kind)
	if k != host.SelfTestShort && k != host.SelfTestLong && k != host.SelfTestAbort {
		return fmt.Errorf("self-test %q: %w: want short, long or abort", kind, drivebay.ErrInvalid)
	}
	_, err := state.Ask(ctx, m.State, drive, func(ctx context.Context, d *drivebay.Drive) (struct{}, error) {
		family, ok := families[d.Protocol]
		if !ok {
			return struct{}{}, fmt.Errorf("%w: drives on %s have no self-tests", drivebay.ErrNoSupport, d.Transport)
		}
		h, err := m.State.Machine.OpenDrive(ctx, evidence.DevOf(d))
		if err != nil {
			return struct{}{}, err
		}
		defer h.Close()
		return struct{}{}, h.SelfTest(ctx, host.SelfTest{Family: family, Kind: k})
	})
	if err != nil {
		return fmt.Errorf("self-test %s: %w", kind, err)
	}
	return m.State.Change(ctx, drive, func(t *state.Tracked) error {
		now := m.State.Machine.Now()
		t.MarkSelfTest(k, now)
		t.NextReading = now
		m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventSelfTest, Drive: t.Drive.ID, To: kind, Cause: "requested: " + state.Describe(&t.Drive)})
		return nil
	})
}

// ReportSelfTests adds an event for a self-test that ended since the last reading.
func (m *Starter) ReportSelfTests(t *state.Tracked, old *drivebay.Evidence, now time.Time) {
	ev := t.Drive.Evidence
	if old == nil || len(ev.SelfTests) == 0 {
		return
	}
	newest := ev.SelfTests[0]
	if newest.Result == drivebay.SelfTestRunning || (len(old.SelfTests) > 0 && sameTest(newest, old.SelfTests[0])) {
		return
	}
	m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventSelfTest, Drive: t.Drive.ID, From: newest.Kind, To: newest.Result.String(),
		Cause: fmt.Sprintf("%s self-test ended: %s (%s)", newest.Kind, newest.Text, state.Describe(&t.Drive))})
}

func sameTest(a, b drivebay.SelfTest) bool {
	return a.Kind == b.Kind && a.Result == b.Result && a.Hours == b.Hours
}
