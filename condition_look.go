package drivebay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ConditionRule is one row of the table that ConditionOf walks. The words are
// for people; check is the same for the machine.
type ConditionRule struct {
	Section  ConditionSection
	Reason   string
	Severity Severity
	When     string
	Says     string // what its message tells beside the drives
	Next     string // the next step; {volume} and {drive} stand for their ids
	Source   string // who asks for it

	check func(*look) *hit
}

// ConditionSection groups the rows by what they look at.
type ConditionSection string

// hit is what a row found, in words, and on which drives; nil for all of them.
type hit struct {
	text string
	legs []leg
}

func say(legs []leg, format string, args ...any) *hit {
	return &hit{text: fmt.Sprintf(format, args...), legs: legs}
}

// look is the facts, sorted once for all rows.
type look struct {
	Facts
	on []leg // every drive of the volume
	// The drives by what is the matter with them; one may be in several.
	missing, dead, bad, suspect, unknown []leg

	worst Severity // of the rows so far
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

// lost says whether the volume has no copy left when these drives have none: none that
// holds everything.
func (l *look) lost(legs []leg) bool {
	m := l.Volume.Mirror
	return len(legs) > 0 && (!l.Volume.Location.Mirrored() || len(legs) == len(l.on) ||
		m != nil && slices.ContainsFunc(legs, func(g leg) bool { return g.id == m.Current }))
}

// unreachable says whether the kernel has given up the last copy that was there.
func (l *look) unreachable() bool { return len(l.dead) > len(l.missing) && l.lost(l.dead) }

// ailing says whether the drives explain a health that is not GOOD.
func (l *look) ailing() bool { return len(l.missing)+len(l.bad)+len(l.suspect)+len(l.unknown) > 0 }

// those are the drives of the volume that are known and so.
func (l *look) those(so func(*Drive) bool) []leg {
	var legs []leg
	for _, g := range l.on {
		if g.drive != nil && so(g.drive) {
			legs = append(legs, g)
		}
	}
	return legs
}

// unplaced says whether it is not known of every drive if it is there.
func (l *look) unplaced() bool {
	for _, g := range l.on {
		if g.drive == nil || g.drive.Status == StatusUnknown {
			return true
		}
	}
	return false
}

// doing is the CSI status, of a FAILED volume the one that it failed in.
func (l *look) doing() CSIStatus {
	if l.Volume.CSIStatus == CSIFailed {
		return l.Volume.State().Before
	}
	return l.Volume.CSIStatus
}

// made says whether the volume's device has to be there.
func (l *look) made() bool {
	switch l.doing() {
	case CSICreating, CSIRemoving, CSIRemoved:
		return false
	}
	return true
}

// message joins evidence, drives and the next step. Only the next step is ours:
// the rest may say anything at any length, and is cut to leave room for it.
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

// nextWhileLeaving is the next step for a drive that leaves the machine; "" for one that
// stays. The advice for a drive in use would contradict what is under way.
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

// mirrorLegs is how many drives a mirror has that is not being rebuilt.
const mirrorLegs = 2

// where tells a hand which drives these are.
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

// told is what the drives themselves are accused of, the worst of each.
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
