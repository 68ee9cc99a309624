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
//   - a finding stands from its first round on, or from the Polls-th in a row
//     where its rule wants several;
//   - one whose cause is gone, or has become less, stands as it was until the
//     cause stayed away for ClearAfter (ClearQuick for what passes);
//   - UNKNOWN ends with the answer: it was never about the drive's past;
//   - one that an operator accepted stays away until its number grows or it
//     turns BAD; what passes by nature (Quick) is accepted until it has passed.
//
// mem is left as it was; what stands is in the Findings of the result.
func Settle(mem drivebay.Memory, found []drivebay.Finding, now time.Time, th Thresholds) drivebay.Memory {
	s := settling{now: now, th: th, out: drivebay.Memory{Acked: maps.Clone(mem.Acked)}}
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
		if !stood && !s.confirmed(f, mem.Seen) {
			continue
		}
		delete(before, f.Code)
		s.out.Findings = append(s.out.Findings, s.meet(old, stood, f))
	}
	for _, old := range mem.Findings {
		if _, left := before[old.Code]; left {
			s.leave(old)
		}
	}
	s.forget(found)
	drivebay.SortFindings(s.out.Findings)
	return s.out
}

type settling struct {
	now time.Time
	th  Thresholds
	out drivebay.Memory
}

// accepted is whether an operator has accepted this much of it. What has grown
// is news again.
func (s *settling) accepted(f drivebay.Finding) bool {
	level, ok := s.out.Acked[f.Code]
	if !ok {
		return false
	}
	if f.Severity == drivebay.HealthSuspect && f.Level <= level {
		return true
	}
	if f.Severity != drivebay.HealthUnknown {
		delete(s.out.Acked, f.Code)
	}
	return false
}

// forget drops what was accepted of passing things once they have passed: the
// next time is another event. What only grows is accepted for good.
func (s *settling) forget(found []drivebay.Finding) {
	for code := range s.out.Acked {
		r := byCode[code]
		if r != nil && r.Quick && !slices.ContainsFunc(found, func(f drivebay.Finding) bool { return f.Code == code }) {
			delete(s.out.Acked, code)
		}
	}
}

// confirmed counts the rounds in a row of a rule that wants several.
func (s *settling) confirmed(f drivebay.Finding, seen map[string]int) bool {
	r := byCode[f.Code]
	if r == nil || r.Polls < 2 {
		return true
	}
	n := seen[f.Code] + 1
	if n >= r.Polls {
		return true
	}
	if s.out.Seen == nil {
		s.out.Seen = map[string]int{}
	}
	s.out.Seen[f.Code] = n
	return false
}

// meet joins a finding with the one that stood. A worse one is believed at once;
// a lesser one only when it stayed lesser for as long as a cause must stay away.
func (s *settling) meet(old drivebay.Finding, stood bool, f drivebay.Finding) drivebay.Finding {
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

func (s *settling) leave(old drivebay.Finding) {
	if old.Severity == drivebay.HealthUnknown {
		return
	}
	if kept, ok := s.kept(old); ok {
		s.out.Findings = append(s.out.Findings, kept)
	}
}

// kept is a finding whose cause is away, until it was away for long enough. A
// clock that went back starts the wait again rather than never ending it.
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

// Acknowledge accepts a standing finding, or every one that can be with code "".
// A present BAD one cannot be wished away; one whose cause is gone can.
func Acknowledge(mem drivebay.Memory, code string) (drivebay.Memory, error) {
	out := drivebay.Memory{Seen: mem.Seen, Acked: maps.Clone(mem.Acked)}
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
		return mem, fmt.Errorf("acknowledge: %w: no finding that can be", drivebay.ErrNotFound)
	case met:
		return mem, fmt.Errorf("acknowledge %s: %w: it is present, and no mere suspicion", code, drivebay.ErrInvalid)
	}
	return mem, fmt.Errorf("acknowledge %s: %w: no such finding stands", code, drivebay.ErrNotFound)
}
