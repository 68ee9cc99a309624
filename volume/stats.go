package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Stats says how full a volume is and how it is, as seen at a path: what is known
// of it, and what the mount table says of the path. Nothing but the filesystem's
// own numbers is asked for now, and no disk is touched for them.
func (e *Engine) Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	var out drivebay.VolumeStats
	view, ok := e.Volumes().Get(r.Volume)
	if !ok {
		return out, e.Missing(r.Volume)
	}
	at, err := e.spotOfVolume(r.Volume, r.Path)
	if err != nil {
		return out, err
	}
	t, err := e.recentTable(ctx)
	if err != nil {
		return out, fmt.Errorf("volume %s: %w", r.Volume, err)
	}
	sc := e.sceneOn(view.Volume, t)
	d := sc.d
	f := *view.Facts
	target := sc.askedAt(at)
	if !target.Mounted && target.Other == "" {
		if kind, err := e.machine.Look(at.Place); err == nil && kind == host.PlaceNothing {
			return out, fmt.Errorf("volume %s: path %s: %w", r.Volume, at, drivebay.ErrNotFound)
		}
	}
	set := f.Mount
	f.Mount = &drivebay.MountFacts{Target: &target}
	if set != nil {
		f.Mount.Staging = set.Staging
		if other := set.Target; target.Mounted && other != nil && !other.Mounted && other.Path != target.Path {
			f.Mount.Target = other
		}
	}
	if r.Staging != "" && view.Mode == drivebay.ModeFS {
		staging, err := e.spotOfVolume(r.Volume, r.Staging)
		if err != nil {
			return out, err
		}
		p := sc.askedAt(staging)
		f.Mount.Staging = &p
	}
	if target.Mounted && f.IO != nil {
		target.ReadError = f.IO.ReadError
	}
	if view.Mode != drivebay.ModeFS {
		if e.stagedBlock(view, at) { // its device is nowhere yet: nothing is to be seen there
			f.Mount = set
		}
		out.Bytes.Total = view.Size
	} else if target.Mounted {
		out.Bytes, out.Inodes = amounts(e.usage(ctx, view, at, d))
	}
	out.Condition = drivebay.ConditionOf(f)
	return out, nil
}

func (e *Engine) stagedBlock(v *drivebay.VolumeView, at spot) bool {
	return slices.ContainsFunc(v.Publications, func(p drivebay.Publication) bool { return p.Staging && p.Path == at.String() })
}

// askedAt is what the mount table says of a path that the record may not have.
func (s *scene) askedAt(at spot) drivebay.PathFacts {
	if p := s.recorded(at); p != nil {
		return s.pathFacts(*p)
	}
	return s.pathFacts(drivebay.Publication{Path: at.String()})
}

// usage asks the filesystem, and has the last figures ready for one that is in no
// state to answer. They must be its own: whoever unmounts it in the meantime
// leaves another to answer, which has another size.
func (e *Engine) usage(ctx context.Context, v *drivebay.VolumeView, at spot, d device) (host.FSUsage, bool) {
	g := e.gauges.of(v.ID)
	last := g.read()
	if e.lane(&v.Volume).Occupied(e.machine.Now()) > usageTime {
		return last.usage, last.measured
	}
	now, err := ask(ctx, e, &v.Volume, usageTime, func(ctx context.Context) (host.FSUsage, error) {
		return e.machine.Usage(ctx, at.Place)
	})
	switch {
	case errors.Is(err, drivebay.ErrTimeout):
		return last.usage, last.measured
	case err != nil:
		return host.FSUsage{}, false
	case last.measured && last.usage.Bytes == now.Bytes:
	default:
		t, err := e.tableAfter(ctx, e.machine.Now())
		if err != nil {
			return host.FSUsage{}, false
		}
		if m, ok := t.top(at.target); !ok || !carries(m, d) {
			return host.FSUsage{}, false
		}
	}
	g.write(func(m *measured) { m.measured, m.usage = true, now })
	return now, true
}

func amounts(u host.FSUsage, known bool) (bytes drivebay.Amount, inodes *drivebay.Amount) {
	if !known {
		return bytes, nil
	}
	bytes = drivebay.Amount{Total: u.Bytes, Used: u.Bytes - min(u.Free, u.Bytes), Available: u.Available}
	if u.Inodes > 0 {
		inodes = &drivebay.Amount{Total: u.Inodes, Used: u.Inodes - min(u.FreeInodes, u.Inodes), Available: u.FreeInodes}
	}
	return bytes, inodes
}
