package repair

import (
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mountoptions"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// mountPoint is one publication, as the mount table shows it.
type mountPoint struct {
	drivebay.Publication
	at       mounts.MountPath
	live     bool // it shows the volume's current device
	dead     bool // it shows a removed device
	readOnly bool // the mount is, or the kernel has made it so
	stranger string
}

// lookAtPaths compares the record with the mount table.
func (p *diagnosis) lookAtPaths() {
	g := &p.signs
	known := map[string]bool{}
	for _, pub := range p.V.Publications {
		at, err := p.CheckPath(pub.Path)
		if err != nil { // the roots have changed since
			continue
		}
		known[at.Target] = true
		one := mountPoint{Publication: pub, at: at}
		state, m := p.StateOf(pub, at.Target)
		// A path that can still be read is not unmounted without a command.
		remounted := !g.r.Safe && g.v.HasFilesystem() && !pub.Staging && !pub.ReadOnly && mounttable.IsReadOnly(m)
		one.live, one.dead = state == mounts.PathLive && !remounted, state == mounts.PathDead
		one.readOnly = state != mounts.PathEmpty && (mounttable.IsReadOnly(m) || mounttable.KernelMadeReadOnly(m) || one.live && g.gaveUp)
		if state == mounts.PathForeign {
			one.stranger = mounttable.What(m)
		}
		g.paths = append(g.paths, one)
		if pub.Staging {
			g.options, g.known = optionsOf(pub, g.r)
		}
	}
	for _, m := range p.T.Of(p.D) {
		if !known[m.Target] {
			g.others = append(g.others, m.Target)
		}
	}
}

// optionsOf returns the options that a mount was made with: those of the call or default ones,
// if they match the recorded flags.
func optionsOf(p drivebay.Publication, r drivebay.HealRequest) ([]string, bool) {
	asked := mountoptions.Plain(r.Options)
	if p.Flags == "" { // the engine crashed before they were recorded
		return asked, r.Block != nil
	}
	label := mountoptions.ContextKey + p.Context
	for _, try := range [][]string{asked, nil, {"ro"}, {label}, {"ro", label}} {
		if mountoptions.Flags(try) == p.Flags {
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
