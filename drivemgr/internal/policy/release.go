package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
)

const (
	// stableRounds is how many ticks in a row a drive has to be at ReleaseAt before its release.
	stableRounds = 2
	// togetherTime is the span within which drives that turn bad behind one part probably
	// have that part as their cause.
	togetherTime = 10 * time.Minute
)

// BadDrive is a drive whose health is at ReleaseAt or worse.
type BadDrive struct {
	Drive  string
	Why    string    // its worst finding
	Since  time.Time // when the first of these findings appeared
	Rounds int       // ticks in a row
	Behind []string  // parts shared with others: enclosure, controller
	May    bool      // it is claimed, present, IN_USE and not a system drive
	Kept   bool      // an operator keeps it despite its findings
}

// releaseDecision is the decision of the policy: one drive to release, and for each other drive that
// turned bad the reason why it is not released.
type releaseDecision struct {
	Release, Why string
	Held         map[string]string
}

// DecideRelease returns which drive to release. Only one drive leaves at a time.
func DecideRelease(all []BadDrive, busy bool) releaseDecision {
	slices.SortFunc(all, func(a, b BadDrive) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Drive, b.Drive)) })
	v := releaseDecision{Held: map[string]string{}}
	for _, t := range all {
		if !t.May || t.Kept || t.Rounds < stableRounds {
			continue
		}
		part, peers := sharedPart(t, all)
		switch {
		case part != "":
			v.Held[t.Drive] = fmt.Sprintf("not released automatically: the health of %s behind the same %s changed within %d min; the cause is probably a cable, a backplane or a controller", strings.Join(peers, ", "), part, togetherTime/time.Minute)
		case !busy && v.Release == "":
			v.Release, v.Why = t.Drive, t.Why
		}
	}
	return v
}

// sharedPart finds drives that turned bad at the same time behind the same part.
func sharedPart(t BadDrive, all []BadDrive) (part string, peers []string) {
	for _, o := range all {
		if o.Drive == t.Drive || o.Since.Sub(t.Since).Abs() > togetherTime {
			continue
		}
		for _, b := range o.Behind {
			if slices.Contains(t.Behind, b) {
				part, peers = b, append(peers, o.Drive)
				break
			}
		}
	}
	return part, peers
}

// SharedParts returns the parts that a drive shares with others: its enclosure, the controller
// of a SCSI drive, the root port of an NVMe drive, which all behind one switch share.
func SharedParts(d *drivebay.Drive) (out []string) {
	if d.Slot.Enclosure != "" {
		out = append(out, "enclosure "+d.Slot.Enclosure)
	}
	for _, p := range d.Paths {
		functions := inventory.PciFunction.FindAllString(p.SysPath, -1)
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
