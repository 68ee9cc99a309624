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

// lookResult is the request and the result of one look.
type lookResult struct {
	of          *tracked
	life        int    // of the drive when the look began
	readContent bool   // the look also reads what is written on the drive
	routine     bool   // the content was known before and may be overwritten since
	changed     uint64 // Kernel.Changed before the look began
	proof       *proof
	looked
}

// failedLooks is how many looks in a row may fail before the evidence of the last good
// look no longer counts ("stale over 3 polls").
const failedLooks = 3

// scheduleLooks starts the looks that are due, each in its drive's lane.
func (m *pollT) scheduleLooks(ctx context.Context) {
	now := m.machine.Now()
	for _, t := range m.drives {
		proving := t.proofDue(now)
		if !t.present || t.looking || t.nextLook.After(now) && !proving || t.drive.Protocol == drivebay.ProtocolNone && !t.fresh && !proving && !t.writtenSince() {
			continue
		}
		if t.lane.Occupied(now) > 0 { // an earlier command still holds it
			t.nextLook, t.nextProof = later(t.nextLook, now.Add(m.opt.Tick)), later(t.nextProof, now.Add(m.opt.Tick))
			continue
		}
		// A request that comes from now on is for the next look, not for this one.
		r := lookResult{of: t, life: t.life, readContent: t.fresh || t.writtenSince(), routine: !t.fresh}
		if t.drive.Kernel != nil {
			r.changed = t.drive.Kernel.Changed
		}
		if proving {
			r.proof = t.kernlog.proofOf()
		}
		t.looking, t.rereading, t.lookedAt, t.nextLook, t.fresh, t.written = true, t.written, now, time.Time{}, false, false
		go func(d drivebay.Drive, l *lane.Lane, timeout time.Duration) {
			r.looked = m.lookThrough(ctx, l, &d, r.readContent, r.proof, timeout)
			select {
			case m.results <- r:
			case <-ctx.Done():
			}
		}(t.drive, t.lane, m.opt.LookTimeout)
	}
}

// lookThrough looks at a drive in its lane; m.slots bounds how many run at a time. A
// look that hangs gives up its slot at its timeout.
func (m *pollT) lookThrough(ctx context.Context, l *lane.Lane, d *drivebay.Drive, readContent bool, p *proof, timeout time.Duration) looked {
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return looked{err: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := lane.Through(ctx, l, m.machine, func(ctx context.Context) (looked, error) {
		out, err := look(ctx, answerRecorder{Machine: m.machine, lane: l}, d, readContent, p)
		out.err = err
		return out, nil
	})
	if err != nil {
		out.err = err
	}
	return out
}

// errOtherDrive marks an answer of another drive than the listed one: the drives were
// swapped, and the uevents have not arrived yet.
var errOtherDrive = errors.New("another drive answers")

// checkSerial returns an error when the evidence is of another drive. It skips USB drives:
// bridges answer with serials of their own.
func checkSerial(d *drivebay.Drive, ev *drivebay.Evidence) error {
	if ev == nil || d.Transport == drivebay.TransportUSB || d.Protocol == drivebay.ProtocolNone {
		return nil
	}
	if said := ev.Identity.Serial; said != "" && d.Serial != "" && said != d.Serial {
		return fmt.Errorf("%s: %w: serial %q instead of %q", d.Name, errOtherDrive, said, d.Serial)
	}
	return nil
}

// applyLook applies the result of a look. It ignores a result from an earlier life of the
// drive: the drive was pulled and is back since.
func (m *pollT) applyLook(r lookResult) {
	t := r.of
	if r.life != t.life {
		return
	}
	t.looking = false
	if r.err == nil {
		r.err = checkSerial(&t.drive, r.evidence)
	}
	now := m.machine.Now()
	t.noteReading(r)
	t.noteAbsence(r.err)
	t.takeProof(r, now)
	t.nextLook = m.nextLook(t, r, now)
	if !t.present {
		return
	}
	m.applyEvidence(t, r.looked, now)
	if r.content != nil && !errors.Is(r.err, errOtherDrive) {
		was := t.drive.Content
		t.drive.Content = settleContent(t.drive, *r.content)
		m.listAgain = m.listAgain || t.baseOf() != t.drive.ID && !t.rec.Duplicate || usesInDoubt(was, &t.drive)
	}
	t.ourErrors, t.ourTimeouts = t.ourErrors+r.refused, t.ourTimeouts+r.aborted
	t.openError, t.drive.Denied = "", errors.Is(r.err, host.ErrPermission)
	// A missing permission and an answer of another drive are no fault of this drive.
	if r.err != nil && !t.mayBeLeaving() && !errors.Is(r.err, host.ErrPermission) && !errors.Is(r.err, errOtherDrive) {
		t.openError = r.err.Error()
	}
	m.refreshKernel(t, now)
	if r.content != nil { // what was written while the look read is read by the next one
		t.readAt = r.changed
	}
	m.assess(t)
	m.keepRecord(t)
}

// writtenSince reports whether a claimed drive was written to since its content was read. A
// drive without writes is not read again, so that it can stay in standby.
func (t *tracked) writtenSince() bool {
	return t.rec.Claim != nil && t.drive.Kernel != nil && t.drive.Kernel.Changed != t.readAt
}

// noteAbsence counts the looks in a row that found no device.
func (t *tracked) noteAbsence(err error) {
	t.absent++
	if !errors.Is(err, host.ErrGone) {
		t.absent = 0
	}
}

// mayBeLeaving reports whether only the last look found no device. A device that is being
// removed cannot be opened a moment before sysfs stops listing it (Linux, block/genhd.c,
// del_gendisk), and a drive that was pulled is not BAD. A second such look counts.
func (t *tracked) mayBeLeaving() bool { return t.absent == 1 }

// noteReading records that the content of a drive still has to be read, and how often that
// has failed. A drive in standby has not failed, and a routine read that brings nothing
// leaves the known content valid.
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

// An unread drive is read again within seconds: until then, it may hold volumes that no
// record names. A drive that stays unreadable is read less often.
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

// nextLook spreads the looks over the poll interval, so that a hundred drives are not
// read at the same moment; it looks more often while a self-test runs.
func (m *pollT) nextLook(t *tracked, r lookResult, now time.Time) time.Time {
	if !t.nextLook.IsZero() { // another look was requested meanwhile
		return t.nextLook
	}
	wait := m.opt.Poll
	switch {
	case t.unread > 0:
		wait = min(wait, rereadAfter(t.unread))
	case t.mayBeLeaving():
		wait = min(wait, rereadFirst)
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

// applyEvidence replaces the old evidence by new. A failed look leaves the old evidence
// in place until too many have failed. Standby does not reset the count of failures: a
// drive that answers nonsense sometimes reports standby, too.
func (m *pollT) applyEvidence(t *tracked, r looked, now time.Time) {
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
		if t.failures++; old != nil && t.failures < failedLooks && (t.mayBeLeaving() || !errors.Is(r.err, host.ErrGone)) {
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

// settleContent combines what is written on the drive with what the kernel reports: a
// drive that has partitions or users is never blank.
func settleContent(d drivebay.Drive, read drivebay.Content) drivebay.Content {
	if stranger, used := strangerIn(d.Uses); used && read.Kind == drivebay.ContentBlank {
		return drivebay.Content{Kind: drivebay.ContentForeign, Signatures: read.Signatures, Reason: inUse + stranger.Kind}
	}
	if d.SizeIssue != "" && read.Kind == drivebay.ContentBlank { // the content may be in the hidden part
		return drivebay.Content{Kind: drivebay.ContentForeign, Reason: d.SizeIssue}
	}
	if read.Kind == drivebay.ContentUnknown && d.Content.Kind == drivebay.ContentForeign {
		return d.Content
	}
	return read
}

// usesInDoubt reports whether the content just read contradicts the uses of the last
// listing: these may be of drivebay partitions, or of partitions that are gone.
func usesInDoubt(was drivebay.Content, d *drivebay.Drive) bool {
	_, used := strangerIn(d.Uses)
	return used && d.Content.Kind == drivebay.ContentOurs && was.Kind != drivebay.ContentOurs || fromUses(d.Content) && !fromUses(was)
}

// assess judges the drive by all evidence and adds events for the changes.
func (m *pollT) assess(t *tracked) {
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
	if t.unasked() { // its first look is under way: a missing answer is no fault yet
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

// thresholds returns the configured thresholds, but evidence is stale no earlier than
// after a few poll intervals.
func (m *pollT) thresholds() health.Thresholds {
	th := m.opt.Thresholds
	th.StaleAfter = max(th.StaleAfter, failedLooks*m.opt.Poll)
	return th
}

// unasked reports whether a drive that can be read has not been read yet.
func (t *tracked) unasked() bool {
	return t.drive.Evidence == nil && t.drive.Protocol != drivebay.ProtocolNone
}

// reportVerdict adds events for new and cleared findings, and for a changed verdict.
// It adds none when a new drive turns out to be GOOD.
func (m *pollT) reportVerdict(t *tracked, verdict drivebay.Health, findings []drivebay.Finding, now time.Time) {
	d := &t.drive
	old := map[string]drivebay.Finding{}
	for _, f := range d.Findings {
		old[f.Code] = f
	}
	var events []drivebay.Event
	cause := "no finding is left"
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
	m.queueEvents(events...)
}

// readKernel updates the kernel's evidence of all drives. It starts no process and
// touches no disk.
func (m *pollT) readKernel() {
	now := m.machine.Now()
	for _, t := range m.drives {
		if !t.present {
			continue
		}
		// Where a drive has findings or may get one, the passing of time alone may change the verdict.
		if m.refreshKernel(t, now) || len(t.rec.Memory.Findings) > 0 || len(t.rec.Memory.Seen) > 0 {
			m.assess(t)
		}
	}
}

// refreshKernel reads the kernel's evidence of one drive and reports whether it changed.
func (m *pollT) refreshKernel(t *tracked, now time.Time) bool {
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

// kernelOf reads the kernel's evidence of one drive and adds the manager's own: how
// long the lane is held, the errors of the kernel log, the error of the last open.
func (m *pollT) kernelOf(t *tracked, now time.Time) *drivebay.Kernel {
	prev := t.drive.Kernel
	k := ReadKernel(m.machine, &t.drive, prev, now)
	if prev != nil && !t.fsSpoke && now.Sub(t.fsAsked) < fsEvery {
		k.Filesystems = prev.Filesystems
	} else {
		k.Filesystems = fsErrors(m.machine, &t.drive)
		t.fsAsked, t.fsSpoke = now, false
	}
	// A command counts as stuck only once it is old enough for a rule to judge it.
	if held := t.lane.Occupied(now); held >= min(m.opt.LookTimeout/3, m.opt.Thresholds.SilentSuspect) {
		k.LaneStuck = held.Truncate(time.Second)
	}
	t.kernlog.count(k, now)
	k.OpenError = t.openError
	t.ourErrors = subtractOurs(k.IOErrors, t.ourErrors)
	t.ourTimeouts = subtractOurs(k.IOTimeouts, t.ourTimeouts)
	return k
}

// subtractOurs subtracts what our own commands added to a counter, and returns what it has subtracted:
// where a driver does not count such commands, the surplus would hide later errors of the drive.
func subtractOurs(counter *uint64, ours uint64) uint64 {
	if counter == nil {
		return 0
	}
	ours = min(*counter, ours)
	*counter -= ours
	return ours
}

// sameKernel reports whether two readings differ in their time only.
func sameKernel(a, b *drivebay.Kernel) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.At, y.At = time.Time{}, time.Time{}
	return reflect.DeepEqual(x, y)
}

// keepRecord hands the drive's record to the keeper, which stores it.
func (m *fleetT) keepRecord(t *tracked) {
	t.rec.Drive = t.drive
	t.rec.Drive.Kernel, t.rec.Disks = nil, t.drive.Disks
	rec := t.rec
	rec.History = slices.Clone(rec.History) // the keeper reads it while we append
	m.keeper.keep(t.drive.ID, rec)
}

func (m *fleetT) keepAll() {
	for _, t := range m.drives {
		m.keepRecord(t)
	}
}
