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
	// stableRounds is how many ticks in a row a drive has to be so before it is released.
	stableRounds = 2
	// togetherTime is within what drives that turn behind one part have that part for
	// their likely cause.
	togetherTime = 10 * time.Minute
)

// turned is a drive whose health is as bad as the policy says.
type turned struct {
	drive  string
	why    string    // its worst finding
	since  time.Time // when the first of these findings came
	rounds int       // ticks in a row
	behind []string  // what it shares with others: enclosure, controller
	may    bool      // it is claimed, here, in use, and the machine does not run from it
	kept   bool      // an operator keeps it in spite of what stands against it
}

// verdict is what the policy does: one drive to release, and those that it leaves alone
// although they turned, with the reason.
type verdict struct {
	release, why string
	held         map[string]string
}

// decide is the policy of replacement. One drive leaves at a time.
func decide(all []turned, busy bool) verdict {
	slices.SortFunc(all, func(a, b turned) int { return cmp.Or(a.since.Compare(b.since), strings.Compare(a.drive, b.drive)) })
	v := verdict{held: map[string]string{}}
	for _, t := range all {
		if !t.may || t.kept || t.rounds < stableRounds {
			continue
		}
		part, peers := together(t, all)
		switch {
		case part != "":
			v.held[t.drive] = fmt.Sprintf("it is not released by itself: %s turned within %v, too, behind the same %s; it looks like a cable, a backplane or a controller", strings.Join(peers, ", "), togetherTime, part)
		case !busy && v.release == "":
			v.release, v.why = t.drive, t.why
		}
	}
	return v
}

// together finds drives that turned at the same time behind the same part.
func together(t turned, all []turned) (part string, peers []string) {
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

// standing names findings so that the same are known again.
func standing(findings []drivebay.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Severity.String()+" "+f.Code)
	}
	return out
}

// behind names the parts that a drive shares with others: its enclosure, the controller
// of a SCSI drive, the root port of an NVMe drive, which those behind one switch share.
func behind(d *drivebay.Drive) (out []string) {
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
