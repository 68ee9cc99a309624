package volume

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// probeEvery is how often a filesystem in use is asked how full it is and, where
// that wakes nobody, made to read a folder: a disk that returns errors looks
// healthy to statfs.
const probeEvery = time.Minute

// watch is what a tick costs: one mount table, and a touch of those filesystems
// whose minute is over.
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
				e.weigh(id)
			}
		}
		g := e.gauges.of(r.Volume.ID)
		if read := e.due(&r.Volume, g.read(), now); read != notDue {
			e.probe(ctx, r.Volume, seen.staged, g, read == readToo)
		}
	}
	e.scrubDue(now)
}

// probing says what is due.
type probing uint8

const (
	notDue probing = iota
	usageOnly
	readToo
)

// due decides on a probe. Requests that failed since the last one are a reason to
// look at once. While requests hang we have nothing to add to them. A disk that
// may sleep is made to read only if somebody else's requests keep it awake.
func (e *Engine) due(v *drivebay.Volume, m measured, now time.Time) probing {
	if m.probing {
		return notDue
	}
	awake, suspicious := true, false
	for _, id := range v.Location.Drives {
		seen := e.seenDrives[id]
		switch {
		case seen == nil || seen.drive == nil || seen.drive.Kernel == nil || seen.drive.Status != drivebay.StatusOnline:
			return notDue
		case seen.io.frozen > 0:
			return notDue
		}
		awake = awake && (seen.drive.Type != drivebay.TypeHDD || seen.drive.Kernel.Completed > seen.ours)
		suspicious = suspicious || seen.io.logged > m.errors
	}
	switch first := m.probedAt.IsZero(); {
	case !suspicious && !first && now.Before(m.nextProbe), e.lane(v).Occupied(now) > 0:
		return notDue
	case suspicious, !first && awake:
		return readToo
	}
	return usageOnly
}

// after is when a volume is probed next. The first time spreads them over the
// minute.
func after(id string, m measured, now time.Time) time.Time {
	if !m.probedAt.IsZero() {
		return now.Add(probeEvery)
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return now.Add(time.Duration(h.Sum32()%uint32(probeEvery/time.Millisecond)) * time.Millisecond)
}

// probe asks a filesystem, in the lane of its drives.
func (e *Engine) probe(ctx context.Context, v drivebay.Volume, staged *stagedFS, g *gauge, read bool) {
	if _, there := staged.in(e.round); !there {
		return
	}
	var errors uint64
	for _, id := range v.Location.Drives {
		errors += e.seenDrives[id].io.logged
	}
	now := e.machine.Now()
	g.write(func(m *measured) {
		m.nextProbe = after(v.ID, *m, now)
		m.probing, m.probedAt, m.errors = true, now, errors
	})
	e.running.Go(func() {
		usage, err := ask(ctx, e, &v, probeTime, func(ctx context.Context) (host.FSUsage, error) {
			g.write(func(m *measured) { m.asking = e.machine.Now() })
			defer g.write(func(m *measured) { m.asking = time.Time{} })
			usage, err := e.machine.Usage(ctx, staged.at.Place)
			if err == nil && read {
				_, err = e.machine.ReadFolder(ctx, staged.at.Place)
			}
			return usage, err
		})
		e.learn(ctx, &v, staged, g, usage, err)
	})
}
