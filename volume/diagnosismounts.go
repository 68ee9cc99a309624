package volume

import "github.com/drivebay/drivebay"

// mountPoint is one publication, as the mount table shows it.
type mountPoint struct {
	drivebay.Publication
	at       mountPath
	live     bool // it shows the volume's current device
	dead     bool // it shows a removed device
	readOnly bool // the mount is, or the kernel has made it so
	stranger string
}

// lookAtPaths compares the record with the mount table.
func (p *diagnosis) lookAtPaths() {
	g := &p.signs
	known := map[string]bool{}
	for _, pub := range p.v.Publications {
		at, err := p.checkPath(pub.Path)
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

// optionsOf returns the options that a mount was made with: those of the call or default ones,
// if they match the recorded flags.
func optionsOf(p drivebay.Publication, r drivebay.HealRequest) ([]string, bool) {
	asked := plainOptions(r.Options)
	if p.Flags == "" { // the engine crashed before they were recorded
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

func (g *symptoms) staging() *mountPoint {
	for i := range g.paths {
		if g.paths[i].Staging {
			return &g.paths[i]
		}
	}
	return nil
}

// targets returns where the volume is published.
func (g *symptoms) targets() []*mountPoint {
	var out []*mountPoint
	for i := range g.paths {
		if !g.paths[i].Staging {
			out = append(out, &g.paths[i])
		}
	}
	return out
}
