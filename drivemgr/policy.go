package drivemgr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

const (
	// stableRounds is how many ticks in a row a drive has to be at ReleaseAt before its release.
	stableRounds = 2
	// togetherTime is the span within which drives that turn bad behind one part probably
	// have that part as their cause.
	togetherTime = 10 * time.Minute
)

// badDrive is a drive whose health is at ReleaseAt or worse.
type badDrive struct {
	drive  string
	why    string    // its worst finding
	since  time.Time // when the first of these findings appeared
	rounds int       // ticks in a row
	behind []string  // parts shared with others: enclosure, controller
	may    bool      // it is claimed, present, IN_USE and no system drive
	kept   bool      // an operator keeps it despite its findings
}

// releaseDecision is the decision of the policy: one drive to release, and the drives that are not
// released although they turned bad, with the reason.
type releaseDecision struct {
	release, why string
	held         map[string]string
}

// decide returns which drive to release. Only one drive leaves at a time.
func decide(all []badDrive, busy bool) releaseDecision {
	slices.SortFunc(all, func(a, b badDrive) int { return cmp.Or(a.since.Compare(b.since), strings.Compare(a.drive, b.drive)) })
	v := releaseDecision{held: map[string]string{}}
	for _, t := range all {
		if !t.may || t.kept || t.rounds < stableRounds {
			continue
		}
		part, peers := sharedPart(t, all)
		switch {
		case part != "":
			v.held[t.drive] = fmt.Sprintf("it is not released by itself: %s turned within %v, too, behind the same %s; it looks like a cable, a backplane or a controller", strings.Join(peers, ", "), togetherTime, part)
		case !busy && v.release == "":
			v.release, v.why = t.drive, t.why
		}
	}
	return v
}

// sharedPart finds drives that turned bad at the same time behind the same part.
func sharedPart(t badDrive, all []badDrive) (part string, peers []string) {
	for _, o := range all {
		if o.drive == t.drive || o.since.Sub(t.since).Abs() > togetherTime {
			continue
		}
		for _, b := range o.behind {
			if slices.Contains(t.behind, b) {
				part, peers = b, append(peers, o.drive)
				break
			}
		}
	}
	return part, peers
}

// findingKeys returns a key for each finding, by which it is recognized later.
func findingKeys(findings []drivebay.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Severity.String()+" "+f.Code)
	}
	return out
}

// sharedParts returns the parts that a drive shares with others: its enclosure, the controller
// of a SCSI drive, the root port of an NVMe drive, which all behind one switch share.
func sharedParts(d *drivebay.Drive) (out []string) {
	if d.Slot.Enclosure != "" {
		out = append(out, "enclosure "+d.Slot.Enclosure)
	}
	for _, p := range d.Paths {
		functions := pciFunction.FindAllString(p.SysPath, -1)
		switch {
		case len(functions) == 0:
		case d.Transport == drivebay.TransportNVMe:
			out = append(out, "PCI port "+functions[0])
		default:
			out = append(out, "controller "+functions[len(functions)-1])
		}
	}
	return out
}
