// Package health judges evidence: it returns a verdict and its reasons.
//
// It is one table of rules (Rules). A rule checks the evidence of the drive, the kernel and
// the history, and returns a finding or nothing; the worst finding is the verdict. The
// package reads no clock, file or device, so that the same evidence always gives the same
// verdict, in the daemon and in a test.
package health

import (
	"math"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// Input holds all the evidence of a verdict. A nil part was not read: it counts neither for nor
// against the drive.
type Input struct {
	Evidence  *drivebay.Evidence
	Kernel    *drivebay.Kernel
	History   []drivebay.Sample // oldest first
	Type      drivebay.Type
	Transport drivebay.Transport
	Protocol  drivebay.Protocol
	Now       time.Time // zero for a document of unknown age
	SizeIssue string    // why the size of the drive is wrong; empty when it is plausible
	Returns   uint64    // how often within 24 h the drive left the machine by itself, or was given up by the kernel, and was back
	Gone      time.Time // when a complete listing first lacked the drive; zero while it is there
}

// Assess applies the rules to one reading. It returns the findings, worst first, at most one for
// each code, and none for a GOOD drive; Settle gives them their history.
func Assess(in Input, th Thresholds) []drivebay.Finding {
	l := newLook(in, th)
	var found []drivebay.Finding
	for i := range table {
		r := &table[i]
		if !r.applies(l) {
			continue
		}
		if h := r.check(l); h != nil {
			found = append(found, drivebay.Finding{Code: r.Code, Severity: h.severity, Text: h.text, Advice: r.Advice, Level: h.level, Since: l.now})
		}
	}
	drivebay.SortFindings(found)
	return found
}

// Rule is one row of the table. The conditions are text for people, in which {key} stands for a
// threshold; check implements them.
type Rule struct {
	Code      string
	Protocols []drivebay.Protocol // nil: any
	Types     []drivebay.Type     // nil: any
	Suspect   string              // condition for SUSPECT; "": never
	Bad       string              // condition for BAD
	Unknown   string              // condition for UNKNOWN
	Advice    string              // the next step for an operator
	Source    string              // the specification, study or kernel file behind the rule
	Polls     int                 // rounds in a row that must agree; 0 and 1: the first is enough
	Quick     bool                // clears after Thresholds.ClearQuick instead of ClearAfter
	Passing   bool                // its level is of now or of a window, and not of the life of the drive: an acceptance ends with the cause
	Wavers    bool                // its level goes up and down while its cause stays the same, as a temperature does

	check func(*look) *hit
	// covers reports whether an acceptance at one level is of all that another level says; nil: it is if it is no lower. Some
	// levels say which fault was found, and not how much of it.
	covers func(accepted, level uint64) bool
}

// sameFault covers the one fault whose code is the level.
func sameFault(accepted, level uint64) bool { return accepted == level }

// sameBits covers faults of which each has a bit in the level.
func sameBits(accepted, level uint64) bool { return level&^accepted == 0 }

// mostIDs is how many attributes a level names.
const mostIDs = 8

// levelOf returns the level of attributes: the id of each in a byte.
func levelOf(ids []uint8) (level uint64) {
	if len(ids) > mostIDs {
		return math.MaxUint64
	}
	for _, id := range ids {
		level = level<<8 | uint64(id)
	}
	return level
}

// sameIDs covers the attributes that a level names.
func sameIDs(accepted, level uint64) bool {
	for ; level > 0; level >>= 8 {
		found := false
		for a := accepted; a > 0 && !found; a >>= 8 {
			found = a&0xFF == level&0xFF
		}
		if !found {
			return false
		}
	}
	return true
}

// hit is the result of a rule whose condition is met.
type hit struct {
	severity drivebay.Health
	level    uint64
	text     string
}

func (r *Rule) applies(l *look) bool {
	if r.Protocols != nil && !slices.Contains(r.Protocols, l.protocol) {
		return false
	}
	return r.Types == nil || slices.Contains(r.Types, l.kind)
}

// groups holds all rules, in the order of the reference page.
var groups = []struct {
	title string
	rules []Rule
}{
	{"Every drive that reports its health", generalRules},
	{"ATA drives: thresholds of the drive", ataRules},
	{"ATA hard disks", hddRules},
	{"ATA solid-state drives", ssdRules},
	{"Wear of solid-state drives of any kind", wearRules},
	{"NVMe drives", nvmeRules},
	{"SCSI and SAS drives", scsiRules},
	{"Every drive: evidence of the kernel", kernelRules},
	{"Every drive that does not answer", silenceRules},
}

var table = func() []Rule {
	var all []Rule
	for _, g := range groups {
		all = append(all, g.rules...)
	}
	return all
}()

var byCode = func() map[string]*Rule {
	m := make(map[string]*Rule, len(table))
	for i := range table {
		m[table[i].Code] = &table[i]
	}
	return m
}()

// Rules returns a copy of the table.
func Rules() []Rule { return slices.Clone(table) }

var (
	onATA  = []drivebay.Protocol{drivebay.ProtocolATA}
	onNVMe = []drivebay.Protocol{drivebay.ProtocolNVMe}
	onSCSI = []drivebay.Protocol{drivebay.ProtocolSCSI}
	onHDD  = []drivebay.Type{drivebay.TypeHDD}
	onSSD  = []drivebay.Type{drivebay.TypeSSD}
)
