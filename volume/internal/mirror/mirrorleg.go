package mirror

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// mirrorLeg holds the state of one leg of a mirror.
type mirrorLeg struct {
	drive, pv string
	here      bool            // the drive answers
	flagged   bool            // LVM counts the physical volume as missing, though it may be there
	position  int             // index of the leg in the kernel's order
	super     *lvm.Superblock // nil: unreadable or absent
}

// leftOut reports whether a leg's superblock leaves the other leg out.
func (l mirrorLeg) leftOut(other mirrorLeg) bool {
	return l.super != nil && l.super.LeftOut(other.position)
}

// whole reports whether a leg is not known to lack data.
func (l mirrorLeg) whole() bool { return l.super == nil || l.super.Whole }

// mirrorSource decides what an inactive mirror may be activated from. It returns the drive of the leg
// that alone holds everything: the kernel gets that leg only, and any other leg joins the active
// mirror. Or it returns "": all legs, which hold the same. The error says that the newest data may be
// elsewhere, or that nothing proves where it is.
//
// The record counts before the superblocks: the superblock of a leg that was activated alone does not
// say so until it is deactivated, and that of a leg that was left out never does.
func mirrorSource(m *drivebay.Mirror, legs []mirrorLeg) (string, error) {
	switch {
	case len(legs) == 1 && legs[0].here: // LVM has taken the other one out
		return legs[0].drive, nil
	case len(legs) != 2:
		return "", staleError{why: fmt.Sprintf("LVM knows %d legs of it", len(legs))}
	case legs[0].here && legs[1].here:
		return sourceOfBoth(m, legs[0], legs[1])
	case legs[0].here:
		return sourceOfOne(m, legs[0], legs[1])
	case legs[1].here:
		return sourceOfOne(m, legs[1], legs[0])
	}
	return "", fmt.Errorf("%w: none of its drives is there", drivebay.ErrNotFound)
}

// withoutFlagged returns the legs that an activation gets: LVM leaves out a physical volume that it
// counts as missing until it is restored, even if it is there again.
func withoutFlagged(legs []mirrorLeg) []mirrorLeg {
	out := slices.Clone(legs)
	for i := range out {
		out[i].here = out[i].here && !out[i].flagged
	}
	return out
}

// sourceOfOne is mirrorSource with one leg there.
func sourceOfOne(m *drivebay.Mirror, here, away mirrorLeg) (string, error) {
	switch {
	case !here.whole():
		return "", staleError{newest: away.drive, why: fmt.Sprintf("the leg on drive %s is not fully synchronized", here.drive)}
	case m != nil && m.Divided, m != nil && m.Doubt != "" && m.Current == "" && !here.leftOut(away):
		return "", staleError{why: m.Doubt, divided: m.Divided}
	case m != nil && m.Current == here.drive && m.Boot == "" && !m.Accepted && here.super != nil && !here.leftOut(away): // it was used with the other one since
		return "", staleError{why: fmt.Sprintf("the record is older than the leg on drive %s, and the other one may have been used without it since", here.drive)}
	case m != nil && m.Current == here.drive:
		return here.drive, nil
	case m != nil && m.Current != "":
		return "", staleError{newest: m.Current}
	case here.leftOut(away), m != nil && m.Doubt == "" && m.Boot == "":
		return here.drive, nil
	}
	other := otherDrive
	if away.drive != "" {
		other = "drive " + away.drive + ", which is not there,"
	}
	return "", staleError{why: fmt.Sprintf("%s may have been used without drive %s", other, here.drive)}
}

// sourceOfBoth is mirrorSource with both legs there.
func sourceOfBoth(m *drivebay.Mirror, a, b mirrorLeg) (string, error) {
	if m != nil && m.Current != "" {
		if m.Current == b.drive {
			a, b = b, a
		}
		switch {
		case m.Current != a.drive:
			return "", staleError{newest: m.Current}
		case m.Accepted:
			return a.drive, nil
		case b.leftOut(a):
			return "", divided(a, b)
		}
		return a.drive, nil
	}
	switch {
	case a.leftOut(b) && b.leftOut(a):
		return "", divided(a, b)
	case a.leftOut(b) && a.whole():
		return a.drive, nil
	case b.leftOut(a) && b.whole():
		return b.drive, nil
	case a.super == nil || b.super == nil:
		return unreadLeg(m, a, b)
	}
	return "", nil
}

// unreadLeg is sourceOfBoth for legs of which at least one superblock cannot be read.
func unreadLeg(m *drivebay.Mirror, a, b mirrorLeg) (string, error) {
	for _, x := range []mirrorLeg{a, b} {
		if x.super != nil && x.whole() && m != nil && m.Boot == "" && m.Doubt == "" {
			return x.drive, nil
		}
	}
	return "", staleError{why: fmt.Sprintf("the metadata of the legs on drives %s and %s cannot be read", a.drive, b.drive)}
}

// kernelCopies reports whether the kernel itself copies from one leg to the other, and in the right
// direction: the target was never used alone, and has fewer events.
func kernelCopies(from, to mirrorLeg) bool {
	return from.super != nil && to.super != nil && from.whole() && from.leftOut(to) && !to.leftOut(from) && from.super.Events > to.super.Events
}

// mayRejoin reports whether the superblocks allow the kernel to take a leg back into a mirror that is
// active on the other one. Otherwise the leg is rebuilt. dropped: the kernel uses the mirror without
// the leg.
func mayRejoin(active, back mirrorLeg, dropped bool) bool {
	switch {
	case active.super == nil || back.super == nil || back.leftOut(active):
		return false
	case dropped:
		return kernelCopies(active, back)
	}
	return !active.leftOut(back)
}

// staleError says why no leg that is there may be used.
type staleError struct {
	newest  string // the drive with the newest data; "": unknown
	why     string
	divided bool // each leg was used without the other one
}

func divided(a, b mirrorLeg) error {
	return staleError{why: fmt.Sprintf("drives %s and %s were each used without the other one", a.drive, b.drive), divided: true}
}

func (e staleError) Error() string {
	if e.newest == "" {
		return "it is not known which leg of the mirror holds the newest data: " + e.why
	}
	text := "the newest data of the mirror are on drive " + e.newest + ", which is not there, or LVM counts it as missing"
	if e.why != "" {
		text += ": " + e.why
	}
	return text
}

func (e staleError) Unwrap() error { return drivebay.ErrRefused }

// liveLegs returns what the kernel reports of the legs of an active mirror: the drives of legs that
// hold everything, and of legs that it has left out. It still reports that after all drives have
// gone.
func liveLegs(legs []mirrorLeg, c lvm.Copy) (whole, dropped []string) {
	for i, l := range legs {
		if i >= len(c.Legs) {
			return nil, nil
		}
		switch c.Legs[i] {
		case 'A':
			whole = append(whole, l.drive)
		case 'D':
			dropped = append(dropped, l.drive)
		}
	}
	return whole, dropped
}

// learnLive returns the record of an active mirror updated from the kernel's report. A leg whose
// drive is gone counts as dropped: the next write leaves it out.
func learnLive(m drivebay.Mirror, legs []mirrorLeg, c lvm.Copy, boot string) (next drivebay.Mirror, is bool) {
	whole, dropped := liveLegs(legs, c)
	switch {
	case len(legs) != 2 || len(c.Legs) != 2 || len(whole) == 0:
		return m, false
	case len(whole) == 1 && whole[0] == "" && slices.Contains(dropped, ""): // both drives are gone: the record holds more
		return m, false
	case len(whole) == 1 && whole[0] == "":
		return drivebay.Mirror{Boot: boot, Doubt: fmt.Sprintf("the leg on drive %v was left out, and the other one is on %s", dropped, otherDrive)}, true
	case slices.Contains(whole, ""):
		return m, false
	case len(whole) == 1:
		if m.Current != whole[0] {
			m = drivebay.Mirror{Current: whole[0]}
		}
	case len(whole) == 2 && legs[0].here != legs[1].here:
		m = drivebay.Mirror{Current: legs[0].drive}
		if legs[1].here {
			m.Current = legs[1].drive
		}
	case len(whole) == 2:
		m = drivebay.Mirror{}
	}
	m.Boot, m.Doubt = boot, ""
	return m, true
}

// otherDrive is the text for a drive that no record names.
const otherDrive = "a drive that is not there and not known"
