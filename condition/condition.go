// Package condition derives the condition, the health and the operational status of a
// volume from its facts. The rules are the rows of tables, one file for each subject.
//
// It is pure: it reads no clock, file or device, so the same facts give the same answer on
// every machine.
package condition

import (
	"cmp"
	"slices"

	"github.com/drivebay/drivebay"
)

// Limits of a condition. The root package has those of a message.
const (
	maxFindings = 16
	maxReason   = 256 // bytes
	maxWord     = 64  // bytes of a name from outside drivebay
	maxLegs     = 3   // drives named in one message
)

// Of returns the condition that follows from the facts by the table of rules.
// It reads no clock, file or device: the same facts give the same condition everywhere.
func Of(f drivebay.Facts) drivebay.Condition {
	l := newLook(f)
	return l.findings()
}

func (l *look) findings() drivebay.Condition {
	var c drivebay.Condition
	for i := range rules {
		r := &rules[i]
		h := r.check(l)
		if h == nil {
			continue
		}
		l.worst = max(l.worst, r.Severity)
		at := len(c)
		if r.First {
			at = 0
		}
		c = slices.Insert(c, at, drivebay.VolumeFinding{Severity: r.Severity, Reason: r.Reason, Message: l.message(r, h)})
	}
	slices.SortStableFunc(c, func(a, b drivebay.VolumeFinding) int { return cmp.Compare(b.Severity, a.Severity) })
	return c[:min(len(c), maxFindings)]
}
