package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

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
	drivebay.Facts
	on []leg // every drive of the volume
	// The drives by their fault; one drive may be in several lists.
	missing, dead, bad, suspect, unknown []leg

	worst drivebay.Severity // of the findings so far
}

func newLook(f drivebay.Facts) *look {
	l := &look{Facts: f, on: legsOf(&f)}
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
		case health == drivebay.HealthBad || givenUp && !gone:
			l.bad = append(l.bad, g)
		case health == drivebay.HealthSuspect:
			l.suspect = append(l.suspect, g)
		case health != drivebay.HealthGood && !gone:
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
func (l *look) unreachable() bool {
	return len(l.dead) > len(l.missing) && l.lost(l.dead) && !l.remote()
}

// remote reports whether a replicated volume works with the disk of its peer.
func (l *look) remote() bool { return l.Replication != nil && l.Replication.Remote }

// ailing reports whether the drives explain a health that is not GOOD.
func (l *look) ailing() bool { return len(l.missing)+len(l.bad)+len(l.suspect)+len(l.unknown) > 0 }

// those returns the known drives of the volume for which so returns true.
func (l *look) those(so func(*drivebay.Drive) bool) []leg {
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
		if g.drive == nil || g.drive.Status == drivebay.StatusUnknown {
			return true
		}
	}
	return false
}

// doing returns the CSI status; of a FAILED volume, the status in which it failed.
func (l *look) doing() drivebay.CSIStatus {
	if l.Volume.CSIStatus == drivebay.CSIFailed {
		return l.Volume.State().Before
	}
	return l.Volume.CSIStatus
}

// made reports whether the volume's device has to be there.
func (l *look) made() bool {
	switch l.doing() {
	case drivebay.CSICreating, drivebay.CSIRemoving, drivebay.CSIRemoved:
		return false
	}
	return true
}

// message joins evidence, drives and the next step. Only the next step has a known
// length: the rest is cut to leave room for it.
func (l *look) message(r *Rule, h *hit) string {
	legs := h.legs
	if legs == nil {
		legs = l.on
	}
	drive := "DRIVE"
	if len(legs) > 0 {
		drive = drivebay.PlainText(legs[0].id, maxWord)
	}
	next := r.Next
	if len(legs) > 0 && (r.Reason == "DiskRemoved" || r.Reason == "DiskFailure" || r.Reason == "DiskDegrading") {
		next = cmp.Or(l.nextWhileLeaving(legs[0]), next)
	}
	next = fillIn(next, drivebay.PlainText(l.Volume.ID, maxWord), drive)
	head := drivebay.PlainText(h.text, drivebay.MaxConditionText) + " (" + where(legs) + ")"
	return drivebay.Clip(head, drivebay.MaxConditionMessage-len(". ")-len(next)) + ". " + next
}

// fillIn puts names into a command: a strings.Replacer takes longer to make than all else here.
func fillIn(command, volume, drive string) string {
	parts := strings.Split(command, "{volume}")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(p, "{drive}", drive)
	}
	return strings.Join(parts, volume)
}

// nextWhileLeaving returns the next step for a drive that leaves the machine; "" for one
// that stays. The advice for a drive in use would contradict the work under way.
func (l *look) nextWhileLeaving(g leg) string {
	if g.drive == nil {
		return ""
	}
	gone, mirrored := g.missing(l.Complete), l.Volume.Location.Mirrored()
	switch usage := g.drive.Usage; {
	case gone && mirrored && l.currentLost(): // no other drive has what it has
		return putBackNewest
	case gone && mirrored && (usage == drivebay.UsageReleasing || len(l.on) > mirrorLegs):
		return "Leave the drive out: the mirror is being rebuilt on another drive; `drivebay explain {drive}` shows the progress."
	case usage == drivebay.UsageReleasing && gone:
		return "The drive is leaving and was pulled too early: put it back so that its data can move, or give up the volume with `drivebay volume forget {volume} --yes`."
	case usage == drivebay.UsageReleasing:
		return "Leave the drive in its bay: its data is moving to other drives; `drivebay explain {drive}` shows the progress."
	case usage == drivebay.UsageReleased:
		return "`drivebay replace {drive}` removes the drive, `drivebay cancel {drive}` keeps it."
	case (usage == drivebay.UsageRemoving || usage == drivebay.UsageRemoved) && mirrored:
		return "The drive was removed: insert its successor; `drivebay replace {drive}` shows the bay."
	case usage == drivebay.UsageRemoving || usage == drivebay.UsageRemoved:
		return "The drive was removed: put it back and run `drivebay accept {drive}`, or give up the volume with `drivebay volume forget {volume} --yes`."
	case usage == drivebay.UsageFailed:
		return "The removal of the drive failed: `drivebay explain {drive}` shows the cause."
	}
	return ""
}

// mirrorLegs is the number of drives of a mirror that is not being rebuilt.
const mirrorLegs = 2

// where describes drives by id, serial and bay, so that an operator can find them.
func where(legs []leg) string {
	if len(legs) == 0 {
		return "drives unknown"
	}
	var parts []string
	for i, g := range legs {
		if i == maxLegs {
			parts = append(parts, fmt.Sprintf("and %d more", len(legs)-i))
			break
		}
		serial, bay := "unknown", "unknown"
		if g.drive != nil && g.drive.Serial != "" {
			serial = drivebay.PlainText(g.drive.Serial, maxWord)
		}
		if g.drive != nil && g.drive.Slot.Bay != "" {
			bay = drivebay.PlainText(g.drive.Slot.Bay, maxWord)
		}
		parts = append(parts, fmt.Sprintf("drive %s, serial %s, bay %s", drivebay.PlainText(g.id, maxWord), serial, bay))
	}
	return strings.Join(parts, "; ")
}

// worstFindings joins the worst finding of each drive.
func worstFindings(legs []leg) string {
	var texts []string
	for _, g := range legs {
		if g.drive != nil && len(g.drive.Findings) > 0 {
			texts = append(texts, g.drive.Findings[0].Text)
		}
	}
	if len(texts) == 0 {
		return "the cause is not recorded"
	}
	return strings.Join(texts, "; ")
}
