package drivebay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ConditionRule is one row of the table of ConditionOf. The texts are for people;
// check is the same rule as code.
type ConditionRule struct {
	Section  ConditionSection
	Reason   string
	Severity Severity
	When     string
	Says     string // what its message contains besides the drives
	Next     string // the next step; {volume} and {drive} are replaced by ids
	Source   string // the specification or fact that demands the rule
	First    bool   // precedes the others of its severity: they follow from it

	check func(*look) *hit
}

// ConditionSection groups the rows by what they examine.
type ConditionSection string

// hit is what a row found, in words, and on which drives; nil legs mean all drives.
type hit struct {
	text string
	legs []leg
}

func say(legs []leg, format string, args ...any) *hit {
	return &hit{text: fmt.Sprintf(format, args...), legs: legs}
}

// look holds the facts with the drives classified once for all rows.
type look struct {
	Facts
	on []leg // every drive of the volume
	// The drives by their fault; one drive may be in several lists.
	missing, dead, bad, suspect, unknown []leg

	worst Severity // of the findings so far
}

func newLook(f Facts) *look {
	l := &look{Facts: f, on: f.legs()}
	if f.Drives == nil {
		return l
	}
	for _, g := range l.on {
		gone, givenUp, health := g.missing(f.Complete), g.givenUp(), g.health()
		if gone {
			l.missing = append(l.missing, g)
		}
		if gone || givenUp {
			l.dead = append(l.dead, g)
		}
		switch {
		case health == HealthBad || givenUp && !gone:
			l.bad = append(l.bad, g)
		case health == HealthSuspect:
			l.suspect = append(l.suspect, g)
		case health != HealthGood && !gone:
			l.unknown = append(l.unknown, g)
		}
	}
	return l
}

// lost reports whether the volume has no complete copy left if these drives have none.
func (l *look) lost(legs []leg) bool {
	m := l.Volume.Mirror
	return len(legs) > 0 && (!l.Volume.Location.Mirrored() || len(legs) == len(l.on) ||
		m != nil && slices.ContainsFunc(legs, func(g leg) bool { return g.id == m.Current }))
}

// unreachable reports whether the kernel has given up the last copy that was there.
func (l *look) unreachable() bool { return len(l.dead) > len(l.missing) && l.lost(l.dead) }

// ailing reports whether the drives explain a health that is not GOOD.
func (l *look) ailing() bool { return len(l.missing)+len(l.bad)+len(l.suspect)+len(l.unknown) > 0 }

// those returns the known drives of the volume for which so returns true.
func (l *look) those(so func(*Drive) bool) []leg {
	var legs []leg
	for _, g := range l.on {
		if g.drive != nil && so(g.drive) {
			legs = append(legs, g)
		}
	}
	return legs
}

// unplaced reports whether it is not known of at least one drive if it is there.
func (l *look) unplaced() bool {
	for _, g := range l.on {
		if g.drive == nil || g.drive.Status == StatusUnknown {
			return true
		}
	}
	return false
}

// doing returns the CSI status; of a FAILED volume, the status in which it failed.
func (l *look) doing() CSIStatus {
	if l.Volume.CSIStatus == CSIFailed {
		return l.Volume.State().Before
	}
	return l.Volume.CSIStatus
}

// made reports whether the volume's device has to be there.
func (l *look) made() bool {
	switch l.doing() {
	case CSICreating, CSIRemoving, CSIRemoved:
		return false
	}
	return true
}

// message joins evidence, drives and the next step. Only the next step has a known
// length: the rest is cut to leave room for it.
func (l *look) message(r *ConditionRule, h *hit) string {
	legs := h.legs
	if legs == nil {
		legs = l.on
	}
	drive := "DRIVE"
	if len(legs) > 0 {
		drive = plain(legs[0].id, maxConditionWord)
	}
	next := r.Next
	if len(legs) > 0 && (r.Reason == "DiskRemoved" || r.Reason == "DiskFailure" || r.Reason == "DiskDegrading") {
		next = cmp.Or(l.nextWhileLeaving(legs[0]), next)
	}
	next = strings.NewReplacer("{volume}", plain(l.Volume.ID, maxConditionWord), "{drive}", drive).Replace(next)
	head := plain(h.text, maxConditionText) + " (" + where(legs) + ")"
	return clip(head, maxConditionMessage-len(". ")-len(next)) + ". " + next
}

// nextWhileLeaving returns the next step for a drive that leaves the machine; "" for one
// that stays. The advice for a drive in use would contradict the work under way.
func (l *look) nextWhileLeaving(g leg) string {
	if g.drive == nil {
		return ""
	}
	gone, mirrored := g.missing(l.Complete), l.Volume.Location.Mirrored()
	switch usage := g.drive.Usage; {
	case gone && mirrored && (usage == UsageReleasing || len(l.on) > mirrorLegs):
		return "Leave the drive out: the mirror is being rebuilt on another one; `drivebay explain {drive}` says how far it is."
	case usage == UsageReleasing && gone:
		return "The drive is to leave and is gone: put it back so that its data can move, or give the volume up with `drivebay volume forget {volume}`."
	case usage == UsageReleasing:
		return "Leave the drive in its bay: its data moves to other drives; `drivebay explain {drive}` says how far it is."
	case usage == UsageReleased:
		return "`drivebay replace {drive}` takes the drive out, `drivebay cancel {drive}` keeps it."
	case (usage == UsageRemoving || usage == UsageRemoved) && mirrored:
		return "The drive was taken out: `drivebay replace {drive}` leads its successor in."
	case usage == UsageRemoving || usage == UsageRemoved:
		return "The drive was taken out: give the volume up with `drivebay volume forget {volume}`, or put the drive back and run `drivebay accept {drive}`."
	case usage == UsageFailed:
		return "The drive was to leave and cannot: `drivebay explain {drive}` says why."
	}
	return ""
}

// mirrorLegs is the number of drives of a mirror that is not being rebuilt.
const mirrorLegs = 2

// where describes drives by id, serial and bay, so that an operator can find them.
func where(legs []leg) string {
	if len(legs) == 0 {
		return "drives not known"
	}
	var parts []string
	for i, g := range legs {
		if i == maxConditionLegs {
			parts = append(parts, fmt.Sprintf("and %d more", len(legs)-i))
			break
		}
		serial, bay := "not known", "not known"
		if g.drive != nil && g.drive.Serial != "" {
			serial = plain(g.drive.Serial, maxConditionWord)
		}
		if g.drive != nil && g.drive.Slot.Bay != "" {
			bay = plain(g.drive.Slot.Bay, maxConditionWord)
		}
		parts = append(parts, fmt.Sprintf("drive %s, serial %s, bay %s", plain(g.id, maxConditionWord), serial, bay))
	}
	return strings.Join(parts, "; ")
}

// told joins the worst finding of each drive.
func told(legs []leg) string {
	var texts []string
	for _, g := range legs {
		if g.drive != nil && len(g.drive.Findings) > 0 {
			texts = append(texts, g.drive.Findings[0].Text)
		}
	}
	if len(texts) == 0 {
		return "no reason is recorded"
	}
	return strings.Join(texts, "; ")
}
