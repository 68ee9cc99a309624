package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/watch"
)

// Stats returns how full a volume is and its condition, as seen at a path: from what
// the engine knows already, and from the mount table. It asks for nothing else but the
// filesystem's own numbers, which touches no disk.
func (e nodeCalls) Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	var out drivebay.VolumeStats
	view, ok := e.ledger.Volumes().Get(r.Volume)
	if !ok {
		return out, e.adopt.Missing(r.Volume)
	}
	at, err := e.mounts.CheckVolumePath(r.Volume, r.Path)
	if err != nil {
		return out, err
	}
	t, err := e.mounttable.RecentTable(ctx)
	if err != nil {
		return out, fmt.Errorf("volume %s: %w", r.Volume, err)
	}
	sc := e.mounts.MountStateIn(view.Volume, t)
	d := sc.D
	f := *view.Facts
	target := sc.AskedAt(at)
	if !target.Mounted && target.Other == "" {
		if kind, err := e.env.Machine.Look(at.Place); err == nil && kind == host.PlaceNothing {
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
	if r.Staging != "" && view.HasFilesystem() {
		staging, err := e.mounts.CheckVolumePath(r.Volume, r.Staging)
		if err != nil {
			return out, err
		}
		p := sc.AskedAt(staging)
		f.Mount.Staging = &p
	}
	if target.Mounted && f.IO != nil {
		target.ReadError = f.IO.ReadError
	}
	if !view.HasFilesystem() {
		if e.watch.StagedBlock(view, at) { // a block volume shows nothing at its staging path
			f.Mount = set
		}
		out.Bytes.Total = view.Size
	} else if target.Mounted {
		out.Bytes, out.Inodes = watch.Amounts(e.watch.Usage(ctx, view, at, d))
	}
	out.Condition = condition.Of(f)
	return out, nil
}
