package volume

import "github.com/drivebay/drivebay"

// mountPoint is one publication, by the mount table.
type mountPoint struct {
	drivebay.Publication
	at       spot
	live     bool // the volume as it is now is seen there
	dead     bool // a device that went is
	readOnly bool // the mount itself; or the kernel has made it so
	stranger string
}

// lookAtPaths holds the record against the mount table.
func (p *patient) lookAtPaths() {
	g := &p.signs
	known := map[string]bool{}
	for _, pub := range p.v.Publications {
		at, err := p.spot(pub.Path)
		if err != nil { // the roots have changed since
			continue
		}
		known[at.target] = true
		one := mountPoint{Publication: pub, at: at}
		state, m := p.stateOf(pub, at.target)
		one.live, one.dead = state == pathLive, state == pathDead
		one.readOnly = state != pathEmpty && (isReadOnly(m) || kernelMadeReadOnly(m) || one.live && g.gaveUp)
		if state == pathForeign {
			one.stranger = what(m)
		}
		g.paths = append(g.paths, one)
		if pub.Staging {
			g.options, g.known = optionsOf(pub, g.r)
		}
	}
	for _, m := range p.t.of(p.d) {
		if !known[m.Target] {
			g.others = append(g.others, m.Target)
		}
	}
}

// optionsOf are the options of a mount that was made once: those of the call, or
// none, if they are the ones.
func optionsOf(p drivebay.Publication, r drivebay.HealRequest) ([]string, bool) {
	asked := plainOptions(r.Options)
	if p.Flags == "" { // who crashed before he wrote them down
		return asked, r.Block != nil
	}
	label := contextKey + p.Context
	for _, try := range [][]string{asked, nil, {"ro"}, {label}, {"ro", label}} {
		if flagsOf(try) == p.Flags {
			return try, true
		}
	}
	return nil, false
}

func (g *signs) staging() *mountPoint {
	for i := range g.paths {
		if g.paths[i].Staging {
			return &g.paths[i]
		}
	}
	return nil
}

// targets are the paths that it is published at.
func (g *signs) targets() []*mountPoint {
	var out []*mountPoint
	for i := range g.paths {
		if !g.paths[i].Staging {
			out = append(out, &g.paths[i])
		}
	}
	return out
}
