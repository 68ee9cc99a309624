package drivemgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// SelfTestPlan is when drives test themselves. A zero interval disables that kind.
type SelfTestPlan struct {
	Enabled bool
	Short   time.Duration // between two short tests of a drive
	Long    time.Duration
	// From and To are the daily window, as durations since local midnight; it may pass
	// midnight. Equal: the whole day.
	From, To time.Duration
	// AtOnce is how many drives of the machine may test at the same time.
	AtOnce int
}

// DefaultSelfTestPlan is short weekly, long monthly, at night, one drive at a time. It
// is off by default: a long test slows a busy drive.
func DefaultSelfTestPlan() SelfTestPlan {
	const day = 24 * time.Hour
	return SelfTestPlan{Short: 7 * day, Long: 30 * day, From: 1 * time.Hour, To: 5 * time.Hour, AtOnce: 1}
}

// open reports whether the time is in the window.
func (p SelfTestPlan) open(now time.Time) bool {
	if p.From == p.To {
		return true
	}
	h, m, s := now.Clock()
	at := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
	if p.From < p.To {
		return p.From <= at && at < p.To
	}
	return p.From <= at || at < p.To
}

// candidate is the state of a drive that the plan uses.
type candidate struct {
	id        string
	running   bool
	able      bool // present, awake, its protocol has self-tests
	lastShort time.Time
	lastLong  time.Time
}

// start is a self-test to be started.
type start struct {
	id   string
	kind host.SelfTestKind
}

// due returns which drives start a test now: the longest overdue first, at most AtOnce
// running. A long test that is due replaces the short one.
func (p SelfTestPlan) due(all []candidate, now time.Time) []start {
	if !p.Enabled || !p.open(now) {
		return nil
	}
	free := p.AtOnce
	type wish struct {
		start
		last time.Time
	}
	var wishes []wish
	for _, c := range all {
		if c.running {
			free--
		}
		if c.running || !c.able {
			continue
		}
		switch {
		case p.Long > 0 && now.Sub(c.lastLong) >= p.Long:
			wishes = append(wishes, wish{start{c.id, host.SelfTestLong}, c.lastLong})
		case p.Short > 0 && now.Sub(later(c.lastShort, c.lastLong)) >= p.Short:
			wishes = append(wishes, wish{start{c.id, host.SelfTestShort}, later(c.lastShort, c.lastLong)})
		}
	}
	slices.SortFunc(wishes, func(a, b wish) int {
		return cmp.Or(a.last.Compare(b.last), strings.Compare(a.id, b.id))
	})
	var out []start
	for _, w := range wishes[:min(max(free, 0), len(wishes))] {
		out = append(out, w.start)
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

var families = map[drivebay.Protocol]host.Family{
	drivebay.ProtocolATA:  host.FamilyATA,
	drivebay.ProtocolNVMe: host.FamilyNVMe,
	drivebay.ProtocolSCSI: host.FamilySCSI,
}

// scheduleSelfTests starts the self-tests that are due. A start that fails is not
// repeated before the next interval.
func (m *selftestsT) scheduleSelfTests(ctx context.Context) {
	now := m.machine.Now()
	if !m.opt.SelfTests.Enabled || !m.opt.SelfTests.open(now) {
		return
	}
	var all []candidate
	for id, t := range m.drives {
		ev := t.drive.Evidence
		_, speaks := families[t.drive.Protocol]
		all = append(all, candidate{
			id: id, running: t.testing(now),
			able:      t.present && speaks && ev != nil && !ev.Standby && t.failures == 0,
			lastShort: t.rec.LastShort, lastLong: t.rec.LastLong,
		})
	}
	for _, s := range m.opt.SelfTests.due(all, now) {
		m.drives[s.id].markSelfTest(s.kind, now)
		go func() {
			if err := m.SelfTest(ctx, s.id, string(s.kind)); err != nil {
				m.log.Warn("a scheduled self-test did not start", "drive", s.id, "op", "selftest", "err", err)
			}
		}()
	}
}

// unheard is how long a test that the daemon started counts as running before the drive
// itself reports it.
const unheard = time.Hour

func (t *tracked) testing(now time.Time) bool {
	ev := t.drive.Evidence
	if ev != nil && ev.SelfTestProgress != nil {
		return true
	}
	started := later(t.rec.LastShort, t.rec.LastLong)
	return now.Sub(started) < unheard && t.lookedAt.Before(started.Add(time.Second))
}

func (t *tracked) markSelfTest(kind host.SelfTestKind, now time.Time) {
	switch kind {
	case host.SelfTestShort:
		t.rec.LastShort = now
	case host.SelfTestLong:
		t.rec.LastLong = now
	}
}

// SelfTest starts or aborts a self-test of a drive.
func (m *selftestsT) SelfTest(ctx context.Context, drive, kind string) error {
	k := host.SelfTestKind(kind)
	if k != host.SelfTestShort && k != host.SelfTestLong && k != host.SelfTestAbort {
		return fmt.Errorf("self-test %q: %w: want short, long or abort", kind, drivebay.ErrInvalid)
	}
	_, err := ask(ctx, m.fleetT, drive, func(ctx context.Context, d *drivebay.Drive) (struct{}, error) {
		family, ok := families[d.Protocol]
		if !ok {
			return struct{}{}, fmt.Errorf("%w: a %s drive has no self-test", drivebay.ErrNoSupport, d.Transport)
		}
		h, err := m.machine.OpenDrive(ctx, devOf(d))
		if err != nil {
			return struct{}{}, err
		}
		defer h.Close()
		return struct{}{}, h.SelfTest(ctx, host.SelfTest{Family: family, Kind: k})
	})
	if err != nil {
		return fmt.Errorf("self-test %s: %w", kind, err)
	}
	return m.change(ctx, drive, func(t *tracked) error {
		now := m.machine.Now()
		t.markSelfTest(k, now)
		t.nextLook = now
		m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventSelfTest, Drive: t.drive.ID, To: kind, Cause: "asked for: " + describe(&t.drive)})
		return nil
	})
}

// reportSelfTests adds an event for a self-test that ended since the last look.
func (m *selftestsT) reportSelfTests(t *tracked, old *drivebay.Evidence, now time.Time) {
	ev := t.drive.Evidence
	if old == nil || len(ev.SelfTests) == 0 {
		return
	}
	newest := ev.SelfTests[0]
	if newest.Result == drivebay.SelfTestRunning || (len(old.SelfTests) > 0 && sameTest(newest, old.SelfTests[0])) {
		return
	}
	m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventSelfTest, Drive: t.drive.ID, From: newest.Kind, To: newest.Result.String(),
		Cause: fmt.Sprintf("%s self-test ended: %s (%s)", newest.Kind, newest.Text, describe(&t.drive))})
}

func sameTest(a, b drivebay.SelfTest) bool {
	return a.Kind == b.Kind && a.Result == b.Result && a.Hours == b.Hours
}
