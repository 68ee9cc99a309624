package volume

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// probeEvery is how often a filesystem in use is asked how full it is and, if that
// wakes no sleeping disk, made to read a folder: a disk that returns errors looks
// healthy to statfs.
const probeEvery = time.Minute

// watch does the work of a tick: it reads the mount table once, and probes the
// filesystems whose minute is over.
func (e *Engine) watch(ctx context.Context) {
	e.roots.Clear()
	if err := e.lookAtMounts(ctx); err != nil {
		e.log.Warn("mounts not listed", "op", "watch", "err", err)
		return
	}
	now := e.machine.Now()
	e.viewMu.Lock()
	defer e.viewMu.Unlock()
	weighed := map[string]bool{}
	for _, r := range e.all() {
		seen := e.views[r.Volume.ID]
		if seen == nil || seen.staged == nil || seen.known.record != r {
			continue
		}
		for _, id := range r.Volume.Location.Drives {
			if !weighed[id] {
				weighed[id] = true
				e.ioLoad(id)
			}
		}
		g := e.counters.of(r.Volume.ID)
		if read := e.due(&r.Volume, g.read(), now); read != notDue {
			e.probe(ctx, r.Volume, seen.staged, g, read == readToo)
		}
	}
	e.scrubDue(now)
}

// probing is the kind of probe that is due.
type probing uint8

const (
	notDue probing = iota
	usageOnly
	readToo
)

// due decides on a probe. Requests that failed since the last one are a reason to
// probe at once. While requests hang, due adds none. A disk that may sleep is made to
// read only if the requests of other programs keep it awake.
func (e *Engine) due(v *drivebay.Volume, m probeResult, now time.Time) probing {
	if m.probing {
		return notDue
	}
	awake, errors := true, uint64(0)
	for _, id := range v.Location.Drives {
		seen := e.seenDrives[id]
		switch {
		case seen == nil || seen.drive == nil || seen.drive.Kernel == nil || seen.drive.Status != drivebay.StatusOnline:
			return notDue
		case seen.io.frozen > 0:
			return notDue
		}
		awake = awake && (seen.drive.Type != drivebay.TypeHDD || seen.drive.Kernel.Completed > seen.ours)
		errors += seen.io.logged
	}
	suspicious := errors > m.errors // of all drives of the volume, as probe records them
	switch first := m.probedAt.IsZero(); {
	case !suspicious && !first && now.Before(m.nextProbe), e.lane(v).Occupied(now) > 0:
		return notDue
	case suspicious, !first && awake:
		return readToo
	}
	return usageOnly
}

// after returns when a volume is probed next. The first probes are spread over the
// minute.
func after(id string, m probeResult, now time.Time) time.Time {
	if !m.probedAt.IsZero() {
		return now.Add(probeEvery)
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return now.Add(time.Duration(h.Sum32()%uint32(probeEvery/time.Millisecond)) * time.Millisecond)
}

// probe asks a filesystem how full it is, in the lane of its drives.
func (e *Engine) probe(ctx context.Context, v drivebay.Volume, staged *stagedFS, g *ioCounters, read bool) {
	if _, there := staged.in(e.lastMounts); !there {
		return
	}
	var errors uint64
	for _, id := range v.Location.Drives {
		errors += e.seenDrives[id].io.logged
	}
	now := e.machine.Now()
	g.write(func(m *probeResult) {
		m.nextProbe = after(v.ID, *m, now)
		m.probing, m.probedAt, m.errors = true, now, errors
	})
	e.inBackground("probe", func() {
		taken := false
		defer func() {
			if !taken { // after a panic
				g.write(func(m *probeResult) { m.probing = false })
			}
		}()
		usage, err := ask(ctx, e, &v, probeTime, func(ctx context.Context) (host.FSUsage, error) {
			g.write(func(m *probeResult) { m.asking = e.machine.Now() })
			defer g.write(func(m *probeResult) { m.asking = time.Time{} })
			usage, err := e.machine.Usage(ctx, staged.at.Place)
			if err == nil && read {
				_, err = e.machine.ReadFolder(ctx, staged.at.Place)
			}
			return usage, err
		})
		e.takeProbe(ctx, &v, staged, g, usage, err)
		taken = true
	})
}
