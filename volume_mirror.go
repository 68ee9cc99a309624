package drivebay

import "slices"

// Mirror records which leg of a mirror holds everything. LVM and the kernel activate a
// leg that missed writes like any other, and a leg does not know what it missed. So the
// daemon stores it before a leg is used alone, and as soon as it notices that a leg is lost.
type Mirror struct {
	// Current is the drive whose leg alone holds everything; empty: all legs do.
	Current string `json:"current,omitempty"`
	// Boot is the boot id of the machine when the mirror was activated; empty: it was
	// deactivated with all legs equal.
	Boot string `json:"boot,omitempty"`
	// Doubt is why it is not known which leg holds everything.
	Doubt string `json:"doubt,omitempty"`
	// Divided is true if each leg was used without the other one.
	Divided bool `json:"divided,omitempty"`
	// Accepted is true if an operator chose Current: newer data on another leg are given
	// up.
	Accepted bool `json:"accepted,omitempty"`
}

// staleLeg reports a mirror whose present legs are not used, and names the drives that
// have to come back.
func (l *look) staleLeg() *hit {
	m := l.Volume.Mirror
	switch {
	case m == nil:
		return nil
	case m.Doubt != "":
		return say(l.missing, "it is not known which leg of the mirror holds the newest data: %s", m.Doubt)
	case m.Current == "" || !l.currentLost():
		return nil
	}
	current := slices.IndexFunc(l.on, func(g leg) bool { return g.id == m.Current })
	if current < 0 {
		return nil
	}
	return say(l.on[current:current+1], "the newest data of the mirror are on a drive that is not there; the leg that is there is older and is not used")
}

// currentLost reports whether the only complete leg is missing while another leg is there.
func (l *look) currentLost() bool {
	m := l.Volume.Mirror
	gone := func(g leg) bool { return g.id == m.Current }
	return m != nil && m.Current != "" && slices.ContainsFunc(l.missing, gone) && len(l.missing) < len(l.on)
}
