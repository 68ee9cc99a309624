package drivemgr

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// lookResult is the end of one look at a drive.
type lookResult struct {
	of          *tracked
	life        int  // of the drive when the look began
	readContent bool // it was to read what is written on the drive, too
	routine     bool // what is known may have been written over since
	proof       *proof
	looked
}

// failedLooks is how many looks in a row may bring nothing before what the last
// good one brought is no longer believed ("stale over 3 polls").
const failedLooks = 3

// scheduleLooks starts the looks that are due, each in its drive's lane.
func (m *Manager) scheduleLooks(ctx context.Context) {
	now := m.machine.Now()
	for _, t := range m.drives {
		proving := t.proofDue(now)
		if !t.present || t.looking || t.nextLook.After(now) && !proving || t.drive.Protocol == drivebay.ProtocolNone && !t.fresh && !proving && !t.writtenSince() {
			continue
		}
		if t.lane.Occupied(now) > 0 { // still held by an earlier question
			t.nextLook, t.nextProof = later(t.nextLook, now.Add(m.opt.Tick)), later(t.nextProof, now.Add(m.opt.Tick))
			continue
		}
		// What is asked for from now on is meant for the next look, not for this one.
		r := lookResult{of: t, life: t.life, readContent: t.fresh || t.writtenSince(), routine: !t.fresh}
		if proving {
			r.proof = t.kernlog.proofOf()
		}
		t.looking, t.lookedAt, t.nextLook, t.fresh = true, now, time.Time{}, false
		go func(d drivebay.Drive, l *lane.Lane, timeout time.Duration) {
			r.looked = m.lookThrough(ctx, l, &d, r.readContent, r.proof, timeout)
			select {
			case m.results <- r:
			case <-ctx.Done():
			}
		}(t.drive, t.lane, m.opt.LookTimeout)
	}
}

// lookThrough looks at a drive in its lane, as one of a bounded number. A look
// that hangs gives its place to others when its time is up.
func (m *Manager) lookThrough(ctx context.Context, l *lane.Lane, d *drivebay.Drive, readContent bool, p *proof, timeout time.Duration) looked {
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return looked{err: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := lane.Through(ctx, l, m.machine, func(ctx context.Context) (looked, error) {
		out, err := look(ctx, hearing{m.machine, l}, d, readContent, p)
		out.err = err
		return out, nil
	})
	if err != nil {
		out.err = err
	}
	return out
}

// errAnother is an answer from another drive than the one that was listed: they
// were swapped, and the uevents are still on their way.
var errAnother = errors.New("another drive answers")

// another says whether the evidence cannot be of this drive. USB bridges answer
// with serials of their own, so only drives that speak for themselves are held to it.
func another(d *drivebay.Drive, ev *drivebay.Evidence) error {
	if ev == nil || d.Transport == drivebay.TransportUSB || d.Protocol == drivebay.ProtocolNone {
		return nil
	}
	if said := ev.Identity.Serial; said != "" && d.Serial != "" && said != d.Serial {
		return fmt.Errorf("%s: %w: serial %q instead of %q", d.Name, errAnother, said, d.Serial)
	}
	return nil
}

// learn takes what a look brought. A drive that was pulled and is back leads
// another life: what was asked before is not about it.
func (m *Manager) learn(r lookResult) {
	t := r.of
	if r.life != t.life {
		return
	}
	t.looking = false
	if r.err == nil {
		r.err = another(&t.drive, r.evidence)
	}
	now := m.machine.Now()
	t.noteReading(r)
	t.takeProof(r, now)
	t.nextLook = m.nextLook(t, r, now)
	if !t.present {
		return
	}
	m.takeEvidence(t, r.looked, now)
	if r.content != nil && !errors.Is(r.err, errAnother) {
		was := t.drive.Content
		t.drive.Content = settleContent(t.drive, *r.content)
		m.again = m.again || t.baseOf() != t.drive.ID && !t.rec.Duplicate || usesInDoubt(was, &t.drive)
	}
	t.ourErrors, t.ourTimeouts = t.ourErrors+r.refused, t.ourTimeouts+r.aborted
	t.openError, t.drive.Denied = "", errors.Is(r.err, host.ErrPermission)
	// That we may not ask, or asked the wrong one, says nothing of the drive.
	if r.err != nil && !errors.Is(r.err, host.ErrPermission) && !errors.Is(r.err, errAnother) {
		t.openError = r.err.Error()
	}
	m.refreshKernel(t, now)
	if r.content != nil && t.drive.Kernel != nil {
		t.readAt = t.drive.Kernel.Changed
	}
	m.assess(t)
	m.keepRecord(t)
}

// writtenSince says whether a claimed drive was written to since it was read: what is known of
// it may be written over. A drive that nothing writes to is left to its sleep.
func (t *tracked) writtenSince() bool {
	return t.rec.Claim != nil && t.drive.Kernel != nil && t.drive.Kernel.Changed != t.readAt
}

// noteReading keeps in mind that what is written on a drive is still to be read, and how
// often that has failed. A drive that sleeps has not failed, and one that was read before
// is known still.
func (t *tracked) noteReading(r lookResult) {
	unread := r.readContent && (r.content == nil && !r.routine || r.content != nil && r.content.Kind == drivebay.ContentUnknown)
	t.fresh = t.fresh || unread
	switch {
	case !unread:
		t.unread = 0
	case r.evidence == nil || !r.evidence.Standby:
		t.unread++
	}
}

// An unread drive is read again within seconds: until it was read, volumes may be on it
// that no record names. One that stays unreadable is asked less often.
const (
	rereadFirst = time.Second
	rereadSoon  = 10 * time.Second
	rereadLater = time.Minute
	rereadTries = 60 // at intervals of rereadSoon
)

func rereadAfter(failed int) time.Duration {
	if failed > rereadTries {
		return rereadLater
	}
	return min(rereadFirst<<min(failed-1, 10), rereadSoon)
}

// nextLook spreads the drives over the poll interval, so that a hundred of them
// are not asked in the same moment; a running self-test is watched more closely.
func (m *Manager) nextLook(t *tracked, r lookResult, now time.Time) time.Time {
	if !t.nextLook.IsZero() { // somebody asked for another one meanwhile
		return t.nextLook
	}
	wait := m.opt.Poll
	switch {
	case t.unread > 0:
		wait = min(wait, rereadAfter(t.unread))
	case r.err != nil:
		wait = min(wait, time.Minute)
	case r.evidence != nil && r.evidence.SelfTestProgress != nil:
		wait = min(wait, time.Minute)
	case t.drive.Evidence == nil:
		h := fnv.New32a()
		h.Write([]byte(t.drive.ID))
		wait = wait/2 + time.Duration(float64(wait/2)*float64(h.Sum32()%1000)/1000)
	}
	return now.Add(wait)
}

// takeEvidence puts new evidence in the place of the old. A look that brought
// nothing leaves the old evidence standing, until it failed too often. That a drive
// says it is asleep is not believed to end its failures: one that answers nonsense
// says that, too, now and then.
func (m *Manager) takeEvidence(t *tracked, r looked, now time.Time) {
	old := t.drive.Evidence
	switch {
	case r.err == nil && r.evidence.Standby:
		if old != nil {
			kept := *old
			kept.Standby = true
			r.evidence = &kept
		}
		t.drive.Evidence = r.evidence
		return
	case r.err == nil:
		t.failures = 0
		t.drive.Evidence = r.evidence
	default:
		if t.failures++; old != nil && t.failures < failedLooks && !errors.Is(r.err, host.ErrGone) {
			return
		}
		t.drive.Evidence = &drivebay.Evidence{At: now, Source: "drive", Protocol: t.drive.Protocol,
			Identity: t.drive.Identity, Type: t.drive.Type,
			Problems: []drivebay.Problem{{Text: r.err.Error()}}}
		return
	}
	ev := t.drive.Evidence
	fillIdentity(&t.drive)
	t.drive.Temperature, t.drive.PowerOnHours = ev.Temperature, ev.PowerOnHours
	if counters := health.Counters(ev, t.drive.Kernel); len(counters) > 0 {
		t.rec.History = health.Thin(append(t.rec.History, drivebay.Sample{At: now, Counters: counters}), now)
	}
	t.drive.Wear = health.Forecast(ev, t.rec.History, now)
	m.reportSelfTests(t, old, now)
}

// settleContent joins what the drive's bytes say with what the kernel says: a
// drive that has partitions or users is never blank.
func settleContent(d drivebay.Drive, read drivebay.Content) drivebay.Content {
	if stranger, used := strangerIn(d.Uses); used && read.Kind == drivebay.ContentBlank {
		return drivebay.Content{Kind: drivebay.ContentForeign, Signatures: read.Signatures, Reason: inUse + stranger.Kind}
	}
	if d.SizeIssue != "" && read.Kind == drivebay.ContentBlank { // what it held may be where it does not reach
		return drivebay.Content{Kind: drivebay.ContentForeign, Reason: d.SizeIssue}
	}
	if read.Kind == drivebay.ContentUnknown && d.Content.Kind == drivebay.ContentForeign {
		return d.Content
	}
	return read
}

// usesInDoubt says whether what was just read from a drive does not go with the uses of its
// last listing: they may be of partitions that are ours, or that are gone.
func usesInDoubt(was drivebay.Content, d *drivebay.Drive) bool {
	_, used := strangerIn(d.Uses)
	return used && d.Content.Kind == drivebay.ContentOurs && was.Kind != drivebay.ContentOurs || fromUses(d.Content) && !fromUses(was)
}

// assess has the drive judged on all that is known of it and notes what changed.
func (m *Manager) assess(t *tracked) {
	now := m.machine.Now()
	t.measure()
	d := &t.drive
	in := health.Input{
		Evidence: d.Evidence, Kernel: d.Kernel, History: t.rec.History,
		Type: d.Type, Transport: d.Transport, Protocol: d.Protocol, Now: now, SizeIssue: d.SizeIssue,
	}
	if d.Status == drivebay.StatusOffline {
		in.Gone = d.LastSeen
	}
	found := health.Assess(in, m.thresholds())
	if t.unasked() { // its first look is under way: no answer yet is no fault yet
		found = slices.DeleteFunc(found, func(f drivebay.Finding) bool { return f.Severity == drivebay.HealthUnknown })
	}
	t.rec.Memory = health.Settle(t.rec.Memory, found, now, m.opt.Thresholds)
	findings := slices.Clone(t.rec.Memory.Findings)
	drivebay.SortFindings(findings)
	verdict := drivebay.WorstOf(findings)
	if t.unasked() && verdict == drivebay.HealthGood {
		verdict = drivebay.HealthUnknown
	}
	m.reportVerdict(t, verdict, findings, now)
	d.Health, d.Findings = verdict, findings
	t.judged = t.judged || !t.unasked()
	m.followSelectors(t)
}

// thresholds are the configured ones, but evidence is not stale before it could
// have been renewed a few times.
func (m *Manager) thresholds() health.Thresholds {
	th := m.opt.Thresholds
	th.StaleAfter = max(th.StaleAfter, failedLooks*m.opt.Poll)
	return th
}

// unasked says that a drive which can be asked has not been asked yet.
func (t *tracked) unasked() bool {
	return t.drive.Evidence == nil && t.drive.Protocol != drivebay.ProtocolNone
}

// reportVerdict notes findings that came and went, and a changed verdict.
// That a new drive turns out to be GOOD is no news.
func (m *Manager) reportVerdict(t *tracked, verdict drivebay.Health, findings []drivebay.Finding, now time.Time) {
	d := &t.drive
	old := map[string]drivebay.Finding{}
	for _, f := range d.Findings {
		old[f.Code] = f
	}
	var events []drivebay.Event
	cause := "nothing stands against it"
	for _, f := range findings {
		if was, ok := old[f.Code]; !ok || was.Severity != f.Severity {
			events = append(events, drivebay.Event{At: now, Kind: drivebay.EventFinding, Drive: d.ID,
				To: f.Code, Cause: fmt.Sprintf("%v: %s (%s)", f.Severity, f.Text, describe(d))})
		}
		delete(old, f.Code)
	}
	if len(findings) > 0 {
		cause = findings[0].Text
	}
	for code := range old {
		events = append(events, drivebay.Event{At: now, Kind: drivebay.EventCleared, Drive: d.ID, From: code, Cause: "the cause is gone"})
	}
	if d.Health != verdict && (t.judged || verdict != drivebay.HealthGood) {
		events = append(events, drivebay.Event{At: now, Kind: drivebay.EventHealth, Drive: d.ID,
			From: d.Health.String(), To: verdict.String(), Cause: cause + " (" + describe(d) + ")"})
	}
	m.tell(events...)
}

// readKernel brings the kernel's own evidence up to date for all drives. It
// forks nothing and touches no disk.
func (m *Manager) readKernel() {
	now := m.machine.Now()
	for _, t := range m.drives {
		if !t.present {
			continue
		}
		// Where something stands against a drive, time itself may change the verdict.
		if m.refreshKernel(t, now) || len(t.rec.Memory.Findings) > 0 {
			m.assess(t)
		}
	}
}

// refreshKernel reads the kernel's evidence of one drive and says whether it changed.
func (m *Manager) refreshKernel(t *tracked, now time.Time) bool {
	k := m.kernelOf(t, now)
	if sameKernel(t.drive.Kernel, k) {
		return false
	}
	if k.GivenUp() {
		t.kernlog.left(now)
	}
	t.drive.Kernel = k
	return true
}

// kernelOf reads the kernel's evidence of one drive and adds our own: how long
// its lane is held, what the kernel log said, how opening it ended.
func (m *Manager) kernelOf(t *tracked, now time.Time) *drivebay.Kernel {
	prev := t.drive.Kernel
	k := ReadKernel(m.machine, &t.drive, prev, now)
	if prev != nil && !t.fsSpoke && now.Sub(t.fsAsked) < fsEvery {
		k.Filesystems = prev.Filesystems
	} else {
		k.Filesystems = fsErrors(m.machine, &t.drive)
		t.fsAsked, t.fsSpoke = now, false
	}
	// A question that was just asked is no news; one that a rule may judge is.
	if held := t.lane.Occupied(now); held >= min(m.opt.LookTimeout/3, m.opt.Thresholds.SilentSuspect) {
		k.LaneStuck = held.Truncate(time.Second)
	}
	t.kernlog.count(k, now)
	k.OpenError = t.openError
	deduct(k.IOErrors, t.ourErrors)
	deduct(k.IOTimeouts, t.ourTimeouts)
	return k
}

func deduct(counter *uint64, ours uint64) {
	if counter != nil {
		*counter -= min(*counter, ours)
	}
}

// sameKernel says whether two readings differ in nothing but their time.
func sameKernel(a, b *drivebay.Kernel) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.At, y.At = time.Time{}, time.Time{}
	return reflect.DeepEqual(x, y)
}

// keepRecord hands what must outlive us to the keeper.
func (m *Manager) keepRecord(t *tracked) {
	t.rec.Drive = t.drive
	t.rec.Drive.Kernel, t.rec.Disks = nil, t.drive.Disks
	rec := t.rec
	rec.History = slices.Clone(rec.History) // the keeper reads it while we append
	m.keeper.keep(t.drive.ID, rec)
}

func (m *Manager) keepAll() {
	for _, t := range m.drives {
		m.keepRecord(t)
	}
}
