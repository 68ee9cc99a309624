package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Stats returns how full a volume is and its condition, as seen at a path: from what
// the engine knows already, and from the mount table. It asks for nothing else but the
// filesystem's own numbers, which touches no disk.
func (e *Engine) Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	var out drivebay.VolumeStats
	view, ok := e.Volumes().Get(r.Volume)
	if !ok {
		return out, e.Missing(r.Volume)
	}
	at, err := e.checkVolumePath(r.Volume, r.Path)
	if err != nil {
		return out, err
	}
	t, err := e.recentTable(ctx)
	if err != nil {
		return out, fmt.Errorf("volume %s: %w", r.Volume, err)
	}
	sc := e.mountStateIn(view.Volume, t)
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
		staging, err := e.checkVolumePath(r.Volume, r.Staging)
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
		if e.stagedBlock(view, at) { // a block volume shows nothing at its staging path
			f.Mount = set
		}
		out.Bytes.Total = view.Size
	} else if target.Mounted {
		out.Bytes, out.Inodes = amounts(e.usage(ctx, view, at, d))
	}
	out.Condition = drivebay.ConditionOf(f)
	return out, nil
}

func (e *Engine) stagedBlock(v *drivebay.VolumeView, at mountPath) bool {
	return slices.ContainsFunc(v.Publications, func(p drivebay.Publication) bool { return p.Staging && p.Path == at.String() })
}

// askedAt returns what the mount table shows at a path that may not be in the record.
func (s *mountState) askedAt(at mountPath) drivebay.PathFacts {
	if p := s.recorded(at); p != nil {
		return s.pathFacts(*p)
	}
	return s.pathFacts(drivebay.Publication{Path: at.String()})
}

// usage asks the filesystem, and returns the last figures if it does not answer in time.
// The answer must be from the volume's filesystem: after an unmount another one answers
// at the path, with another size.
func (e *Engine) usage(ctx context.Context, v *drivebay.VolumeView, at mountPath, d device) (host.FSUsage, bool) {
	g := e.counters.of(v.ID)
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
	g.write(func(m *probeResult) { m.measured, m.usage = true, now })
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
