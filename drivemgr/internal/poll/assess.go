package poll

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
)

// applyEvidence replaces the old evidence by new. A failed reading leaves the old evidence
// in place until too many have failed. Standby does not reset the count of failures: a
// drive that answers nonsense sometimes reports standby, too.
func (m *Poller) applyEvidence(t *state.Tracked, r evidence.Result, now time.Time) {
	old := t.Drive.Evidence
	defer func() { t.Drive.SelfTest = t.Drive.Evidence.RunningTest() }()
	switch {
	case r.Err == nil && r.Evidence.Standby:
		if old != nil {
			kept := *old
			kept.Standby = true
			r.Evidence = &kept
		}
		t.Drive.Evidence = r.Evidence
		return
	case r.Err == nil:
		t.Failures = 0
		t.Drive.Evidence = r.Evidence
	default:
		if t.Failures++; old != nil && t.Failures < failedReadings && (t.MayBeLeaving() || !errors.Is(r.Err, host.ErrGone)) {
			return
		}
		t.Drive.Evidence = &drivebay.Evidence{At: now, Source: "drive", Protocol: t.Drive.Protocol,
			Identity: t.Drive.Identity, Type: t.Drive.Type,
			Problems: []drivebay.Problem{{Text: r.Err.Error()}}}
		return
	}
	ev := t.Drive.Evidence
	state.FillIdentity(&t.Drive)
	t.Drive.Temperature, t.Drive.PowerOnHours = ev.Temperature, ev.PowerOnHours
	if counters := health.Counters(ev, t.Drive.Kernel); len(counters) > 0 {
		t.Rec.History = health.Thin(append(t.Rec.History, drivebay.Sample{At: now, Counters: counters}), now)
		m.readPast(t, counters, now)
	}
	t.Drive.Wear = health.Forecast(ev, t.Rec.History, now)
	t.NameSelfTest(old)
	m.SelfTests.ReportSelfTests(t, old, now)
}

// readPast reads once what was measured of a drive before its record begins, and judges the drive again. The id of a drive that
// shares its names follows from its place: what was measured under it may be of another drive.
func (m *Poller) readPast(t *state.Tracked, counters map[string]uint64, now time.Time) {
	past := m.State.Opt.Past
	if past == nil || t.PastRead || health.Reaches(t.Rec.History, now) || t.Drive.IdentityIssue != "" || t.Rec.Duplicate {
		return
	}
	t.PastRead = true
	id := t.Drive.ID
	m.State.Jobs = append(m.State.Jobs, func(ctx context.Context) {
		points, err := past(id)
		if err != nil {
			m.State.Log.Warn("the history of a drive cannot be read: its growth is judged from now on", "op", "history", "drive", id, "err", err)
		}
		if len(points) == 0 {
			return
		}
		_ = m.State.Do(ctx, func() error { // its only error is that the daemon ends
			if m.State.Drives[id] != t {
				return nil // forgotten meanwhile
			}
			now := m.State.Machine.Now()
			t.Rec.History = health.Recall(t.Rec.History, points, counters, now)
			t.Drive.Wear = health.Forecast(t.Drive.Evidence, t.Rec.History, now)
			m.Assess(t)
			m.State.KeepRecord(t)
			return nil
		})
	})
}

// usesInDoubt reports whether the content just read contradicts the uses of the last
// listing: these may be of drivebay partitions, or of partitions that are gone.
func usesInDoubt(was drivebay.Content, d *drivebay.Drive) bool {
	_, used := inventory.ForeignUse(d.Uses)
	return used && d.Content.Kind == drivebay.ContentOurs && was.Kind != drivebay.ContentOurs || inventory.FromUses(d.Content) && !inventory.FromUses(was)
}

// Assess judges the drive by all evidence and adds events for the changes.
func (m *Poller) Assess(t *state.Tracked) {
	now := m.State.Machine.Now()
	t.Measure()
	d := &t.Drive
	in := health.Input{
		Evidence: d.Evidence, Kernel: d.Kernel, History: t.Rec.History,
		Type: d.Type, Transport: d.Transport, Protocol: d.Protocol, Now: now, SizeIssue: d.SizeIssue, Returns: t.Kernlog.Returns(now),
	}
	if d.Status == drivebay.StatusOffline {
		in.Gone = d.LastSeen
	}
	found := health.Assess(in, m.thresholds(t))
	if t.NotReadYet() { // its first reading is under way: a missing answer is no fault yet
		found = slices.DeleteFunc(found, func(f drivebay.Finding) bool { return f.Severity == drivebay.HealthUnknown })
	}
	found = health.Unread(t.Rec.Memory, found, d.Evidence)
	t.Rec.Memory = health.Settle(t.Rec.Memory, found, now, m.State.Opt.Thresholds)
	findings := slices.Clone(t.Rec.Memory.Findings)
	drivebay.SortFindings(findings)
	verdict := drivebay.WorstOf(findings)
	if t.NotReadYet() && verdict == drivebay.HealthGood {
		verdict = drivebay.HealthUnknown
	}
	m.reportVerdict(t, verdict, findings, now)
	d.Health, d.Findings = verdict, findings
	t.Judged = t.Judged || !t.NotReadYet()
	m.Claims.FollowSelectors(t)
}

// thresholds returns the configured thresholds, but evidence is stale no earlier than
// after a few poll intervals. A record may be TelemetryAge older than the last reading: until
// the first reading of this daemon ends, the age of the record's evidence is no finding.
func (m *Poller) thresholds(t *state.Tracked) health.Thresholds {
	th := m.State.Opt.Thresholds
	th.StaleAfter = max(th.StaleAfter, failedReadings*m.State.Opt.Poll)
	if t.Recalled {
		th.StaleAfter += state.TelemetryAge
	}
	return th
}

// reportVerdict adds events for new and cleared findings, and for a changed verdict.
// It adds none when a new drive turns out to be GOOD.
func (m *Poller) reportVerdict(t *state.Tracked, verdict drivebay.Health, findings []drivebay.Finding, now time.Time) {
	d := &t.Drive
	old := map[string]drivebay.Finding{}
	for _, f := range d.Findings {
		old[f.Code] = f
	}
	var events []drivebay.Event
	cause := "the drive has no more findings"
	for _, f := range findings {
		if was, ok := old[f.Code]; !ok || was.Severity != f.Severity {
			events = append(events, drivebay.Event{At: now, Kind: drivebay.EventFinding, Drive: d.ID,
				To: f.Code, Cause: fmt.Sprintf("%v: %s (%s)", f.Severity, f.Text, state.Describe(d))})
		}
		delete(old, f.Code)
	}
	if len(findings) > 0 {
		cause = findings[0].Text
	}
	for code := range old {
		events = append(events, drivebay.Event{At: now, Kind: drivebay.EventCleared, Drive: d.ID, From: code, Cause: "the cause is gone"})
	}
	if d.Health != verdict && (t.Judged || verdict != drivebay.HealthGood) {
		events = append(events, drivebay.Event{At: now, Kind: drivebay.EventHealth, Drive: d.ID,
			From: d.Health.String(), To: verdict.String(), Cause: cause + " (" + state.Describe(d) + ")"})
	}
	m.State.QueueEvents(events...)
}
