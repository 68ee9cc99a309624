package volume

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// mirrorLeg is what is known of a leg of a mirror.
type mirrorLeg struct {
	drive, pv string
	here      bool            // its drive answers
	flagged   bool            // LVM counts its physical volume as missing, though it may be there
	position  int             // as the kernel counts the legs
	super     *lvm.Superblock // nil: it could not be read, or there is none
}

// leftOut says whether a leg says that it served without another.
func (l mirrorLeg) leftOut(other mirrorLeg) bool {
	return l.super != nil && l.super.LeftOut(other.position)
}

// whole says that nothing is known that a leg lacks.
func (l mirrorLeg) whole() bool { return l.super == nil || l.super.Whole }

// mirrorSource decides what a mirror that is not active may be activated from: the drive
// of a leg, and then no other leg may be used before it is made anew; or "", all legs
// that are there, as the kernel finds them. Where the newest data may be elsewhere, or
// nothing proves where they are, the error says so.
//
// The record is asked before the superblocks: a leg that was activated alone does not
// say so before it is deactivated, and a leg that was left out never does.
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

// withoutFlagged are the legs as an activation gets them: LVM leaves out a physical volume
// that it counts as missing until that is restored, also when it is there again.
func withoutFlagged(legs []mirrorLeg) []mirrorLeg {
	out := slices.Clone(legs)
	for i := range out {
		out[i].here = out[i].here && !out[i].flagged
	}
	return out
}

// sourceOfOne is for a leg whose other one is not there.
func sourceOfOne(m *drivebay.Mirror, here, away mirrorLeg) (string, error) {
	switch {
	case !here.whole():
		return "", staleError{newest: away.drive, why: fmt.Sprintf("the leg on drive %s was not copied to its end", here.drive)}
	case m != nil && m.Divided, m != nil && m.Doubt != "" && m.Current == "" && !here.leftOut(away):
		return "", staleError{why: m.Doubt, divided: m.Divided}
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

// sourceOfBoth is for legs that are both there.
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
		case kernelCopies(a, b):
			return "", nil
		}
		return a.drive, nil
	}
	switch {
	case a.leftOut(b) && b.leftOut(a):
		return "", divided(a, b)
	case kernelCopies(a, b), kernelCopies(b, a):
		return "", nil
	case a.leftOut(b) && a.whole():
		return a.drive, nil
	case b.leftOut(a) && b.whole():
		return b.drive, nil
	case a.super == nil || b.super == nil:
		return unreadLeg(m, a, b)
	}
	return "", nil
}

// unreadLeg is for legs of which one has a superblock that cannot be read.
func unreadLeg(m *drivebay.Mirror, a, b mirrorLeg) (string, error) {
	for _, x := range []mirrorLeg{a, b} {
		if x.super != nil && x.whole() && m != nil && m.Boot == "" && m.Doubt == "" {
			return x.drive, nil
		}
	}
	return "", staleError{why: fmt.Sprintf("the metadata of the legs on drives %s and %s cannot be read", a.drive, b.drive)}
}

// kernelCopies says that the kernel by itself copies from one leg to the other, and from
// the right one: the other one has not served alone, and has seen less.
func kernelCopies(from, to mirrorLeg) bool {
	return from.super != nil && to.super != nil && from.whole() && from.leftOut(to) && !to.leftOut(from) && from.super.Events > to.super.Events
}

// mayRejoin says whether a leg may be taken back by a mirror that is active on another
// one as the kernel does it, by the superblocks: else it is made anew. Dropped says that
// the kernel uses the mirror without the leg.
func mayRejoin(active, back mirrorLeg, dropped bool) bool {
	switch {
	case active.super == nil || back.super == nil || back.leftOut(active):
		return false
	case dropped:
		return kernelCopies(active, back)
	}
	return !active.leftOut(back)
}

// staleError is why no leg of a mirror that is there may be used.
type staleError struct {
	newest  string // the drive with the newest data; "": it is not known which that is
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

// liveLegs is what the kernel says of the legs of an active mirror: the drives of those
// that hold everything, and of those that it has left out. It says so also after all
// drives have gone.
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

// learnLive is what the record of an active mirror becomes by what the kernel says.
// A leg whose drive went is as good as dropped: the next write leaves it out.
func learnLive(m drivebay.Mirror, legs []mirrorLeg, c lvm.Copy, boot string) (next drivebay.Mirror, is bool) {
	whole, dropped := liveLegs(legs, c)
	switch {
	case len(legs) != 2 || len(c.Legs) != 2 || len(whole) == 0:
		return m, false
	case len(whole) == 1 && whole[0] == "" && slices.Contains(dropped, ""): // both drives went: the record knows more
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

// otherDrive stands for a drive that no record names any more.
const otherDrive = "a drive that is not there and not known"
