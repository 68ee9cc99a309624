package health

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// Settle gives findings their history, so that a verdict does not flap:
//
//   - a finding stands from its first assessment on, or from the Polls-th round in a
//     row where its rule requires several;
//   - a finding whose cause is gone, or has become less, stands unchanged until the
//     cause has been gone for ClearAfter (ClearQuick for rules marked Quick);
//   - what was found in the pages of a drive stands unchanged while they cannot be read (of
//     single pages, see Unread);
//   - UNKNOWN ends with the first answer, because it is not about the drive's past;
//   - a finding that an operator accepted stays hidden until its level grows or it
//     turns BAD; one of a Quick or Passing rule is accepted only until its cause is gone.
//     Where the level says which fault it is, an acceptance is of that fault alone.
//     Where the level of a rule that is not marked Wavers falls, no more than what is left
//     stays accepted: what comes after that is another fault.
//
// Settle does not change mem; the standing findings are in the Findings of the result.
func Settle(mem drivebay.Memory, found []drivebay.Finding, now time.Time, th Thresholds) drivebay.Memory {
	s := settling{now: now, th: th, out: drivebay.Memory{Acked: maps.Clone(mem.Acked)}}
	s.silent = slices.ContainsFunc(found, func(f drivebay.Finding) bool { return slices.Contains(silence, f.Code) })
	// A clock that went back begins another round.
	s.sameRound = len(mem.Seen) > 0 && now.Sub(mem.SeenAt).Abs() < betweenRounds
	before := map[string]drivebay.Finding{}
	for _, f := range mem.Findings {
		before[f.Code] = f
	}
	for _, f := range found {
		old, stood := before[f.Code]
		if s.accepted(f) {
			delete(before, f.Code)
			continue
		}
		if !stood && !s.confirmed(f, mem) {
			continue
		}
		delete(before, f.Code)
		s.out.Findings = append(s.out.Findings, s.mergeStanding(old, stood, f))
	}
	for _, old := range mem.Findings {
		if _, left := before[old.Code]; left {
			s.keepCleared(old)
		}
	}
	s.forget(found)
	drivebay.SortFindings(s.out.Findings)
	return s.out
}

// betweenRounds is how far two assessments must be apart to count as two rounds: several
// assessments can follow one reading of the evidence.
const betweenRounds = time.Second

type settling struct {
	now       time.Time
	th        Thresholds
	out       drivebay.Memory
	sameRound bool // as the assessment before
	silent    bool // the drive does not answer
}

// accepted reports whether an operator has accepted the finding at this level. A level that has
// grown, or BAD, ends the acceptance.
func (s *settling) accepted(f drivebay.Finding) bool {
	level, ok := s.out.Acked[f.Code]
	if !ok {
		return false
	}
	r := byCode[f.Code]
	covered := f.Level <= level
	if r != nil && r.covers != nil {
		covered = r.covers(level, f.Level)
	}
	if f.Severity == drivebay.HealthSuspect && covered {
		if r != nil && !r.Wavers {
			s.out.Acked[f.Code] = f.Level
		}
		return true
	}
	if f.Severity != drivebay.HealthUnknown {
		delete(s.out.Acked, f.Code)
	}
	return false
}

// forget drops the acceptance of a finding of a Quick or Passing rule once its cause is gone: the
// next finding is another event. Findings of other rules are accepted for good. While the pages of
// a drive cannot be read, what they showed was not looked for.
func (s *settling) forget(found []drivebay.Finding) {
	for code := range s.out.Acked {
		r := byCode[code]
		unread := s.silent && fromPages[code]
		if r != nil && (r.Quick || r.Passing && !unread) && !slices.ContainsFunc(found, func(f drivebay.Finding) bool { return f.Code == code }) {
			delete(s.out.Acked, code)
		}
	}
}

// confirmed reports whether the rule was met in as many rounds in a row as it requires, and
// counts them.
func (s *settling) confirmed(f drivebay.Finding, mem drivebay.Memory) bool {
	r := byCode[f.Code]
	if r == nil || r.Polls < 2 {
		return true
	}
	n := mem.Seen[f.Code]
	if !s.sameRound || n == 0 {
		n++
	}
	if n >= r.Polls {
		return true
	}
	if s.out.Seen == nil {
		s.out.Seen, s.out.SeenAt = map[string]int{}, s.now
		if s.sameRound {
			s.out.SeenAt = mem.SeenAt
		}
	}
	s.out.Seen[f.Code] = n
	return false
}

// mergeStanding merges a finding with the standing one of its code. A worse finding counts at once; a
// lesser one only when it stayed lesser for as long as a cause must be gone.
func (s *settling) mergeStanding(old drivebay.Finding, stood bool, f drivebay.Finding) drivebay.Finding {
	f.Since, f.Gone = s.now, time.Time{}
	if !stood || f.Severity.Rank() > old.Severity.Rank() || old.Severity == drivebay.HealthUnknown {
		return f
	}
	if f.Severity == old.Severity {
		f.Since = old.Since
		return f
	}
	if kept, ok := s.kept(old); ok {
		return kept
	}
	return f
}

// silence are the findings of a drive whose pages cannot be read.
var silence = []string{"EvidenceMissing", "EvidenceStale", "DriveOffline", "KernelOpen"}

// fromPages holds the codes of the rules that judge the pages of a drive.
var fromPages = func() map[string]bool {
	m := map[string]bool{}
	for _, rules := range [][]Rule{generalRules, ataRules, hddRules, ssdRules, wearRules, nvmeRules, scsiRules} {
		for _, r := range rules {
			m[r.Code] = true
		}
	}
	return m
}()

func (s *settling) keepCleared(old drivebay.Finding) {
	if old.Severity == drivebay.HealthUnknown {
		return
	}
	if s.silent && old.Gone.IsZero() && fromPages[old.Code] { // its cause was not looked for
		s.out.Findings = append(s.out.Findings, old)
		return
	}
	if kept, ok := s.kept(old); ok {
		s.out.Findings = append(s.out.Findings, kept)
	}
}

// kept returns a finding whose cause is gone, and reports whether it still stands. A clock that
// went back restarts the wait, which would else never end.
func (s *settling) kept(old drivebay.Finding) (drivebay.Finding, bool) {
	if old.Gone.IsZero() || old.Gone.After(s.now) {
		old.Gone = s.now
	}
	wait := s.th.ClearAfter
	if r := byCode[old.Code]; r != nil && r.Quick {
		wait = s.th.ClearQuick
	}
	return old, s.now.Sub(old.Gone) < wait
}

// Acknowledge accepts a standing finding, or with code "" every finding that can be accepted. A
// BAD finding can be accepted only when its cause is gone.
func Acknowledge(mem drivebay.Memory, code string) (drivebay.Memory, error) {
	out := drivebay.Memory{Seen: mem.Seen, SeenAt: mem.SeenAt, Acked: maps.Clone(mem.Acked)}
	done, met := 0, false
	for _, f := range mem.Findings {
		mine := code == "" || f.Code == code
		met = met || mine
		gone := !f.Gone.IsZero()
		if !mine || (!gone && f.Severity != drivebay.HealthSuspect) {
			out.Findings = append(out.Findings, f)
			continue
		}
		done++
		if f.Severity == drivebay.HealthSuspect {
			if out.Acked == nil {
				out.Acked = map[string]uint64{}
			}
			out.Acked[f.Code] = f.Level
		}
	}
	switch {
	case done > 0:
		return out, nil
	case code == "":
		return mem, fmt.Errorf("acknowledge: %w: the drive has no finding that can be acknowledged", drivebay.ErrNotFound)
	case met:
		return mem, fmt.Errorf("acknowledge %s: %w: a finding that is BAD or UNKNOWN cannot be acknowledged while its cause is present", code, drivebay.ErrInvalid)
	}
	return mem, fmt.Errorf("acknowledge %s: %w: the drive has no such finding", code, drivebay.ErrNotFound)
}
