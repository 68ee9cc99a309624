package watch

import (
	"context"
	"fmt"
	"strconv"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// ProveUnused reads the front of a volume that is in no use when the content of its drive, as it was last listed, does not show its filesystem
// or header, or shows it again: nothing else says before the next stage that another program has overwritten it. The list alone proves
// nothing: it may be older than the volume. Of a volume in use, the kernel writes the superblock again.
func (e *Watcher) ProveUnused(ctx context.Context, r *drivebay.VolumeRecord) {
	shown, known := e.shownOnDrive(r)
	v, g, now := &r.Volume, e.Mounts.Counters.Of(r.Volume.ID), e.Machine.Now()
	if m := g.Read(); !known || shown == (m.Overwritten == "") || m.Probing || now.Before(m.NextProof) || e.Steps.Lane(v).Occupied(now) > 0 {
		return
	}
	g.Write(func(m *mounts.ProbeResult) { m.Probing, m.NextProof = true, now.Add(probeEvery) })
	e.Ledger.InBackground("proof", func() {
		defer e.Inventory.ChangedNow()
		defer g.Write(func(m *mounts.ProbeResult) { m.Probing = false })
		has, err := steps.Ask(ctx, e.Steps, v, steps.ProbeTime, func(ctx context.Context) (string, error) {
			disk, err := e.Device.OpenShown(ctx, e.Device.Stack(v).Piece().State)
			if err != nil {
				return "", err
			}
			defer disk.Close()
			c := content.Detect(disk, disk.Size(), disk.BlockSize())
			if shows(c, "", v) {
				return "", nil
			}
			if c.Reason != "" {
				return "", fmt.Errorf("its content: %w: %s", host.ErrUnreadable, c.Reason)
			}
			return content.Describe(c), nil
		})
		if is, gone := e.Ledger.Record(v.ID); err != nil || gone != nil || is.Work != nil || is.Volume.Location.Partition != v.Location.Partition {
			return
		}
		g.Write(func(m *mounts.ProbeResult) { m.Overwritten = has })
		if has == "" && !shown {
			err = e.Drives.Written(ctx, v.Location.Drives[0])
		}
		if has != "" || err != nil {
			e.Log.Warn("volume in no use read", "op", "watch", "volume", v.ID, "has", has, "err", err)
		}
	})
}

// shownOnDrive reports whether the content of the drive of a volume shows what was made there for it. Known is false
// where it need not.
func (e *Watcher) shownOnDrive(r *drivebay.VolumeRecord) (shown, known bool) {
	v := &r.Volume
	if v.Location.OnLVM() || len(v.Publications) > 0 || r.Work != nil || v.AwaitsKey || v.Replicates() || !v.HasFilesystem() && !v.Encrypted() {
		return false, false
	}
	part, there := e.Partitions.Partition(v)
	if !there {
		return false, false
	}
	seen := e.seenDrives[v.Location.Drives[0]]
	if seen.gone() || seen.drive.Status != drivebay.StatusOnline || seen.io.frozen > 0 {
		return false, false
	}
	c := seen.drive.Content
	return shows(c, strconv.Itoa(part.Number), v), c.Kind == drivebay.ContentOurs && c.Reason == ""
}

// shows reports whether a drive, or one of its partitions, shows what was made on a piece of it for the volume.
func shows(c drivebay.Content, partition string, v *drivebay.Volume) bool {
	if v.Encrypted() {
		return content.Has(c, partition, "crypto_LUKS", v.LUKSUUID)
	}
	return content.Has(c, partition, v.FSType, v.FSUUID)
}
