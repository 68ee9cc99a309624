package watch

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// probeEvery is how often a filesystem in use is asked how full it is and, if that
// wakes no sleeping disk, made to read a folder: a disk that returns errors looks
// healthy to statfs.
const probeEvery = time.Minute

// probing is the kind of probe that is due.
type probing uint8

const (
	NotDue probing = iota
	usageOnly
	ReadToo
)

// Due decides on a probe. Requests that failed since the last one are a reason to
// probe at once. While requests hang, due adds none. A disk that may sleep is made to
// read only if the requests of other programs keep it awake. A mirror without one of its
// drives is probed as before, and so is a volume that works with the disk of its peer:
// that may last for weeks.
func (e *Watcher) Due(v *drivebay.Volume, m mounts.ProbeResult, now time.Time) probing {
	if m.Probing {
		return NotDue
	}
	awake, errors, here := true, uint64(0), v.Replicates() && e.Replications.Of(v.ID).Remote // without a drive of its own
	for _, id := range v.Location.Drives {
		seen := e.seenDrives[id]
		switch {
		case seen.gone() && (here || v.Location.Mirrored()):
			continue
		case seen == nil || seen.drive == nil || seen.drive.Kernel == nil || seen.drive.Status != drivebay.StatusOnline, seen.io.frozen > 0:
			return NotDue
		}
		here = true
		awake = awake && (seen.drive.Type != drivebay.TypeHDD || seen.drive.Kernel.Completed > seen.ours)
		errors += seen.io.logged
	}
	if !here {
		return NotDue
	}
	suspicious := errors > m.Errors // of all drives of the volume, as probe records them
	switch first := m.ProbedAt.IsZero(); {
	case !suspicious && !first && now.Before(m.NextProbe), e.Steps.Lane(v).Occupied(now) > 0:
		return NotDue
	case suspicious, !first && awake, m.ReadError != "": // only a read proves that the error is gone
		return ReadToo
	}
	return usageOnly
}

// after returns when a volume is probed next. The first probes are spread over the
// minute.
func after(id string, m mounts.ProbeResult, now time.Time) time.Time {
	if !m.ProbedAt.IsZero() {
		return now.Add(probeEvery)
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return now.Add(time.Duration(h.Sum32()%uint32(probeEvery/time.Millisecond)) * time.Millisecond)
}

// Probe asks a filesystem how full it is, in the lane of its drives.
func (e *Watcher) Probe(ctx context.Context, v drivebay.Volume, staged *StagedFS, g *mounts.IOCounters, read bool) {
	if _, there := staged.in(e.LastMounts); !there {
		return
	}
	var errors uint64
	for _, id := range v.Location.Drives {
		if seen := e.seenDrives[id]; seen != nil {
			errors += seen.io.logged
		}
	}
	now := e.Machine.Now()
	g.Write(func(m *mounts.ProbeResult) {
		m.NextProbe = after(v.ID, *m, now)
		m.Probing, m.ProbedAt, m.Errors = true, now, errors
	})
	e.Ledger.InBackground("probe", func() {
		taken := false
		defer func() {
			if !taken { // after a panic
				g.Write(func(m *mounts.ProbeResult) { m.Probing = false })
			}
		}()
		usage, err := steps.Ask(ctx, e.Steps, &v, steps.ProbeTime, func(ctx context.Context) (host.FSUsage, error) {
			g.Write(func(m *mounts.ProbeResult) { m.Asking = e.Machine.Now() })
			defer g.Write(func(m *mounts.ProbeResult) { m.Asking = time.Time{} })
			usage, err := e.Machine.Usage(ctx, staged.at.Place)
			if err == nil && read {
				_, err = e.Machine.ReadFolder(ctx, staged.at.Place)
			}
			return usage, err
		})
		e.takeProbe(ctx, &v, staged, g, usage, read, err)
		taken = true
	})
}
