package condition

import "slices"

const putBackNewest = "Put back the drive with the newest data. If that drive is lost, `drivebay volume accept-loss {volume} --yes` continues with the other leg; data written since then is lost."

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
