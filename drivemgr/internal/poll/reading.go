package poll

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/drivemgr/internal/policy"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// failedReadings is how many readings in a row may fail before the evidence of the last good
// reading no longer counts ("stale over 3 polls").
const failedReadings = 3

// StartReadings starts the readings that are due, each in its drive's lane.
func (m *Poller) StartReadings(ctx context.Context) {
	now := m.State.Machine.Now()
	for _, t := range m.State.Drives {
		proving := t.ProofDue(now)
		if !t.Present || t.Reading || t.NextReading.After(now) && !proving || t.Drive.Protocol == drivebay.ProtocolNone && !t.Fresh && !proving && !t.WrittenSince() {
			continue
		}
		if t.Lane.Occupied(now) > 0 { // an earlier command still holds it
			t.NextReading, t.NextProof = policy.Later(t.NextReading, now.Add(m.State.Opt.Tick)), policy.Later(t.NextProof, now.Add(m.State.Opt.Tick))
			continue
		}
		// A request that comes from now on is for the next reading, not for this one.
		r := state.Reading{Of: t, Life: t.Life, ReadContent: t.Fresh || t.WrittenSince(), Routine: !t.Fresh}
		if t.Drive.Kernel != nil {
			r.Changed = t.Drive.Kernel.Changed
		}
		if proving {
			r.Proof = t.Kernlog.ProofOf()
		}
		t.Reading, t.Rereading, t.ReadingBegan, t.NextReading, t.Fresh, t.Written = true, t.Written, now, time.Time{}, false, false
		go func(d drivebay.Drive, l *lane.Lane, timeout time.Duration) {
			r.Result = m.ReadDrive(ctx, l, &d, r.ReadContent, r.Proof, timeout)
			select {
			case m.Results <- r:
			case <-ctx.Done():
			}
		}(t.Drive, t.Lane, m.State.Opt.ReadTimeout)
	}
}

// ReadDrive reads a drive in its lane; m.Slots limits how many run at a time. A
// reading that hangs gives up its slot at its timeout.
func (m *Poller) ReadDrive(ctx context.Context, l *lane.Lane, d *drivebay.Drive, readContent bool, p *kernellog.Proof, timeout time.Duration) evidence.Result {
	select {
	case m.Slots <- struct{}{}:
		defer func() { <-m.Slots }()
	case <-ctx.Done():
		return evidence.Result{Err: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := lane.Through(ctx, l, m.State.Machine, func(ctx context.Context) (evidence.Result, error) {
		out, err := evidence.Read(ctx, evidence.AnswerRecorder{Machine: m.State.Machine, Lane: l}, d, readContent, p)
		out.Err = err
		return out, nil
	})
	if err != nil {
		out.Err = err
	}
	return out
}

// checkSerial returns an error when the evidence is of another drive. It skips USB drives:
// bridges answer with serials of their own.
func checkSerial(d *drivebay.Drive, ev *drivebay.Evidence) error {
	if ev == nil || d.Transport == drivebay.TransportUSB || d.Protocol == drivebay.ProtocolNone {
		return nil
	}
	if said := ev.Identity.Serial; said != "" && d.Serial != "" && said != d.Serial {
		return fmt.Errorf("%s: %w: its serial is %q, expected %q", d.Name, state.ErrOtherDrive, said, d.Serial)
	}
	return nil
}

// ApplyReading applies the result of a reading. It ignores a result from an earlier life of the
// drive: since the reading began, the drive was pulled and put back.
func (m *Poller) ApplyReading(r state.Reading) {
	t := r.Of
	if r.Life != t.Life {
		return
	}
	t.Reading, t.Recalled = false, false
	if r.Err == nil {
		r.Err = checkSerial(&t.Drive, r.Evidence)
	}
	now := m.State.Machine.Now()
	t.NoteReading(r)
	t.NoteAbsence(r.Err)
	t.TakeProof(r, now)
	t.NextReading = m.nextReading(t, r, now)
	if again := now.Add(rereadSoon); r.Content != nil && t.DoubtTable(r.Content) && again.Before(t.NextReading) {
		t.NextReading = again
	}
	if !t.Present {
		return
	}
	m.applyEvidence(t, r.Result, now)
	if r.Content != nil && !errors.Is(r.Err, state.ErrOtherDrive) {
		was := t.Drive.Content
		t.Drive.Content = inventory.SettleContent(t.Drive, *r.Content)
		m.ListAgain = m.ListAgain || t.BaseOf() != t.Drive.ID && !t.Rec.Duplicate || usesInDoubt(was, &t.Drive)
	}
	t.OurErrors, t.OurTimeouts = t.OurErrors+r.Refused, t.OurTimeouts+r.Aborted
	t.OpenError, t.Drive.Denied = "", errors.Is(r.Err, host.ErrPermission)
	// A missing permission and an answer of another drive are no fault of this drive.
	if r.Err != nil && !t.MayBeLeaving() && !errors.Is(r.Err, host.ErrPermission) && !errors.Is(r.Err, state.ErrOtherDrive) {
		t.OpenError = r.Err.Error()
	}
	m.RefreshKernel(t, now)
	if r.Content != nil { // what was written while the reading read is read by the next one
		t.ContentReadAt = r.Changed
	}
	m.Assess(t)
	m.State.KeepRecord(t)
}

// An unread drive is read again within seconds: until then, it may hold volumes that no
// record names. A drive that stays unreadable is read less often.
const (
	RereadFirst = time.Second
	rereadSoon  = 10 * time.Second
	rereadLater = time.Minute
	rereadTries = 60 // at intervals of rereadSoon
)

func rereadAfter(failed int) time.Duration {
	if failed > rereadTries {
		return rereadLater
	}
	return backoff.Backoff{First: RereadFirst, Most: rereadSoon}.Wait(failed)
}

// nextReading spreads the readings over the poll interval, so that a hundred drives are not
// read at the same moment; it reads it more often while a self-test runs.
func (m *Poller) nextReading(t *state.Tracked, r state.Reading, now time.Time) time.Time {
	if !t.NextReading.IsZero() { // another reading was requested meanwhile
		return t.NextReading
	}
	wait := m.State.Opt.Poll
	switch {
	case t.Unread > 0:
		wait = min(wait, rereadAfter(t.Unread))
	case t.MayBeLeaving():
		wait = min(wait, RereadFirst)
	case r.Err != nil:
		wait = min(wait, time.Minute)
	case r.Evidence.RunningTest() != nil:
		wait = min(wait, time.Minute)
	case t.Drive.Evidence == nil:
		h := fnv.New32a()
		h.Write([]byte(t.Drive.ID))
		wait = wait/2 + time.Duration(float64(wait/2)*float64(h.Sum32()%1000)/1000)
	}
	return now.Add(wait)
}
