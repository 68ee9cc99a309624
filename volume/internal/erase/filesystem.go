package erase

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// ends is how much of each end of a volume is zeroed before a filesystem is made, or when the
// volume is deleted without a wipe: it covers the signatures of all formats, except those that
// are looked for one by one.
const ends = 4 * partitions.MiB

// OnDisk opens a device in a lane and calls f.
func (e *Eraser) OnDisk(ctx context.Context, lane string, t device.WriteTarget, f func(context.Context, host.Disk) error) error {
	_, err := steps.Through(ctx, e.Steps, lane, steps.ProgramTime, func(ctx context.Context) (struct{}, error) {
		disk, err := e.Device.OpenForWriting(ctx, t)
		if err != nil {
			return struct{}{}, err
		}
		defer disk.Close()
		return struct{}{}, f(ctx, disk)
	})
	return err
}

// HasFS reports whether the filesystem with the chosen UUID is on the volume.
func HasFS(c drivebay.Content, v *drivebay.Volume) bool {
	for _, s := range c.Signatures {
		if s.Partition == "" && s.Format == v.FSType && strings.EqualFold(s.UUID, v.FSUUID) {
			return true
		}
	}
	return false
}

// ClearMarks zeroes both ends, and then every place that still has a signature.
func ClearMarks(ctx context.Context, disk host.Disk) error {
	return ClearStretch(ctx, disk, 0, disk.Size())
}

// ClearStretch clears the signatures in a part of a device, which need not be a partition yet.
func ClearStretch(ctx context.Context, disk host.Disk, start, size uint64) error {
	n := min(size, ends)
	if err := errors.Join(disk.Zero(ctx, start, n), disk.Zero(ctx, start+size-n, n), disk.Sync()); err != nil {
		return err
	}
	const rounds = 8 // a format has signatures in a few places
	for range rounds {
		c := content.Detect(io.NewSectionReader(disk, int64(start), int64(size)), size, disk.BlockSize())
		if c.Kind == drivebay.ContentBlank || c.Reason != "" {
			return nil // done reports what cannot be read
		}
		for _, s := range c.Signatures {
			if at := s.Offset / partitions.MiB * partitions.MiB; at < size {
				if err := disk.Zero(ctx, start+at, min(partitions.MiB, size-at)); err != nil {
					return err
				}
			}
		}
		if err := disk.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// BlankStretch makes a part of a device blank for all that tell by reading it. A partition for a physical volume
// is proved blank only by that.
func BlankStretch(ctx context.Context, disk host.Disk, start, size uint64) error {
	if err := ClearStretch(ctx, disk, start, size); err != nil {
		return err
	}
	return ZeroSamples(ctx, disk, start, size)
}

// Mkfs returns the command that makes the filesystem with the chosen UUID. It forces nothing:
// where a program would ask, it stops.
func Mkfs(v *drivebay.Volume, dev string) []string {
	switch v.FSType {
	case "xfs":
		return []string{"mkfs.xfs", "-q", "-m", "uuid=" + v.FSUUID, dev}
	case "btrfs":
		return []string{"mkfs.btrfs", "-q", "-U", v.FSUUID, dev}
	}
	// A pod cannot use blocks that are reserved for root.
	return []string{"mkfs.ext4", "-q", "-m", "0", "-U", v.FSUUID, dev}
}
