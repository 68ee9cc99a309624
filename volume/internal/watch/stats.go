package watch

import (
	"context"
	"errors"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// StagedBlock reports whether a block volume is staged at a path.
func (e *Watcher) StagedBlock(v *drivebay.VolumeView, at mounts.MountPath) bool {
	return slices.ContainsFunc(v.Publications, func(p drivebay.Publication) bool { return p.Staging && p.Path == at.String() })
}

// Usage asks the filesystem, and returns the last figures if it does not answer in time.
// The answer must be from the volume's filesystem: after an unmount another one answers
// at the path, with another size.
func (e *Watcher) Usage(ctx context.Context, v *drivebay.VolumeView, at mounts.MountPath, d mounttable.Device) (host.FSUsage, bool) {
	g := e.Mounts.Counters.Of(v.ID)
	last := g.Read()
	if e.Steps.Lane(&v.Volume).Occupied(e.Machine.Now()) > steps.UsageTime {
		return last.Usage, last.Measured
	}
	now, err := steps.Ask(ctx, e.Steps, &v.Volume, steps.UsageTime, func(ctx context.Context) (host.FSUsage, error) {
		return e.Machine.Usage(ctx, at.Place)
	})
	switch {
	case errors.Is(err, drivebay.ErrTimeout):
		return last.Usage, last.Measured
	case err != nil:
		return host.FSUsage{}, false
	case last.Measured && last.Usage.Bytes == now.Bytes:
	default:
		t, err := e.MountTable.TableAfter(ctx, e.Machine.Now())
		if err != nil {
			return host.FSUsage{}, false
		}
		if m, ok := t.Top(at.Target); !ok || !mounttable.Carries(m, d) {
			return host.FSUsage{}, false
		}
	}
	g.Write(func(m *mounts.ProbeResult) { m.Measured, m.Usage = true, now })
	return now, true
}

// Amounts converts the usage of a filesystem for an answer.
func Amounts(u host.FSUsage, known bool) (bytes drivebay.Amount, inodes *drivebay.Amount) {
	if !known {
		return bytes, nil
	}
	bytes = drivebay.Amount{Total: u.Bytes, Used: u.Bytes - min(u.Free, u.Bytes), Available: u.Available}
	if u.Inodes > 0 {
		inodes = &drivebay.Amount{Total: u.Inodes, Used: u.Inodes - min(u.FreeInodes, u.Inodes), Available: u.FreeInodes}
	}
	return bytes, inodes
}
