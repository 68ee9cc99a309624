package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// An event is sent when a volume turns abnormal, when a reason is added to its condition or
// gets worse (a mirror that loses its second drive has the reason that it had with one), and
// when it has recovered. The record keeps what was sent, so that a restart does not send it again.

const (
	// recoveredAfter is how long a reason has to be absent before it counts as gone: a reason
	// that comes and goes is sent once.
	recoveredAfter = 30 * time.Second
	// eventsAfter is how long after the first set no event is sent: drives are still being
	// listed and read.
	eventsAfter = 20 * time.Second
)

// reasonsSent holds what was sent of the condition of one volume.
type reasonsSent struct {
	sent map[string]time.Time // when the condition last had the reason, by the levels of its severity
}

// levels returns what stands for a finding among what was sent: its reason, and the reason with each severity above
// DEGRADED up to its own.
func levels(f drivebay.VolumeFinding) []string {
	out := []string{f.Reason}
	for s := drivebay.SeverityDegraded + 1; s <= f.Severity; s++ {
		out = append(out, f.Reason+" "+s.String())
	}
	return out
}

// SendConditions sends events for the conditions that have changed since the last ones.
func (e *Watcher) SendConditions() {
	set, now := e.Ledger.Volumes(), e.Machine.Now()
	if set.Seq == 0 {
		return
	}
	if e.eventsFrom.IsZero() {
		e.eventsFrom = now.Add(eventsAfter)
	}
	if now.Before(e.eventsFrom) {
		return
	}
	was := e.reasons
	e.reasons = make(map[string]reasonsSent, len(was))
	for _, v := range set.Volumes {
		is, known := was[v.ID]
		if !known {
			is = e.recallReasons(v.ID, now)
		}
		if kind, from, to, change := is.take(v.Condition, now); change {
			e.sendCondition(v, kind, from, to)
		}
		if is.sent != nil {
			e.reasons[v.ID] = is
		}
	}
}

// recallReasons returns what an earlier run has sent.
func (e *Watcher) recallReasons(id string, now time.Time) reasonsSent {
	r, err := e.Ledger.Record(id)
	if err != nil || len(r.Reasons) == 0 {
		return reasonsSent{}
	}
	out := reasonsSent{map[string]time.Time{}}
	for _, reason := range r.Reasons {
		out.sent[reason] = now
	}
	return out
}

// take compares a condition with what was sent, and decides what to send now: kind is empty
// where only the record changes.
func (s *reasonsSent) take(c drivebay.Condition, now time.Time) (kind drivebay.EventKind, from, to []string, change bool) {
	if s.sent == nil && !c.Abnormal() {
		return "", nil, nil, false
	}
	from = s.list()
	if s.sent == nil {
		s.sent = map[string]time.Time{}
	}
	for _, f := range c {
		for _, level := range levels(f) {
			if _, sent := s.sent[level]; !sent {
				kind = drivebay.EventVolumeAbnormal
			}
			s.sent[level] = now
		}
	}
	for reason, seen := range s.sent {
		if now.Sub(seen) >= recoveredAfter {
			delete(s.sent, reason)
		}
	}
	if to = s.list(); len(to) == 0 {
		s.sent, kind = nil, drivebay.EventVolumeRecovered
	}
	return kind, from, to, !slices.Equal(from, to)
}

func (s *reasonsSent) list() []string {
	var out []string
	for reason := range s.sent {
		out = append(out, reason)
	}
	slices.Sort(out)
	return out
}

// names returns the reasons in a list of what was sent.
func names(list []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(list), func(level string) bool { return strings.Contains(level, " ") }), ", ")
}

// sendCondition records what is sent, and sends it. An event is sent even if the record cannot
// be written: the next run sends it again.
func (e *Watcher) sendCondition(v *drivebay.VolumeView, kind drivebay.EventKind, from, to []string) {
	_, err := e.Ledger.ChangeUnseen(v.ID, func(r *drivebay.VolumeRecord) error {
		r.Reasons = to
		return nil
	})
	if err != nil {
		e.Log.Warn("reasons of a condition not kept", "op", "watch", "volume", v.ID, "err", err)
	}
	if kind == "" {
		return
	}
	ev := drivebay.Event{At: e.Machine.Now(), Kind: kind, Volume: v.ID, From: names(from), To: names(to),
		Cause: fmt.Sprintf("volume %q: %s", v.Name, v.Condition.Message())}
	if len(v.Location.Drives) > 0 {
		ev.Drive = v.Location.Drives[0]
	}
	e.Drives.Note(ev)
}
