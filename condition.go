package drivebay

import (
	"slices"
	"strings"
)

// Condition lists what is wrong with a volume, worst first, with one finding for each
// pair of severity and reason. It is empty when no fault is known.
type Condition []VolumeFinding

// VolumeFinding is one thing that is wrong with a volume.
type VolumeFinding struct {
	Severity Severity `json:"severity"`
	Reason   string   `json:"reason"`  // CamelCase, for machines
	Message  string   `json:"message"` // evidence, drives and the next step, for people
}

// Limits of a condition. Every answer of a list carries reasons and messages.
const (
	MaxConditionMessage = 1024 // bytes
	MaxConditionText    = 320  // bytes of the evidence of one finding
)

// Abnormal reports whether anything is wrong.
func (c Condition) Abnormal() bool { return len(c) > 0 }

// Severity returns the severity of the worst finding.
func (c Condition) Severity() Severity {
	if len(c) == 0 {
		return SeverityNone
	}
	return c[0].Severity
}

// Message returns the condition in one line, for callers that have no room for a list.
// It names each reason once.
func (c Condition) Message() string {
	if len(c) == 0 {
		return "no fault is known"
	}
	named, also := []string{c[0].Reason}, ""
	for _, f := range c[1:] {
		if !slices.Contains(named, f.Reason) {
			named = append(named, f.Reason)
		}
	}
	if len(named) > 1 {
		also = Clip(" Also: "+strings.Join(named[1:], ", "), MaxConditionMessage/2)
	}
	return Clip(c[0].Reason+": "+c[0].Message, MaxConditionMessage-len(also)) + also
}
