package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
)

// ends is how much of each end of a volume is zeroed before a filesystem is made, or when the
// volume is deleted without a wipe: it covers the signatures of all formats, except those that
// are looked for one by one.
const ends = 4 * mib

// onDevice opens the device of a volume for writing and proves that it is on the drives that
// the record names. Of an encrypted volume it opens the plain device. With alone, nothing else
// may have it open.
func (e *Engine) onDevice(ctx context.Context, v *drivebay.Volume, alone bool, f func(context.Context, host.Disk) error) error {
	if err := e.mayWrite(v.Location.Drives...); err != nil {
		return err
	}
	lane, t, err := e.targetOf(ctx, v)
	if err != nil {
		return err
	}
	t.alone = alone
	return e.onDisk(ctx, lane, t, f)
}

// lookAtDevice is onDevice for reading: it needs no claim.
func (e *Engine) lookAtDevice(ctx context.Context, v *drivebay.Volume, f func(context.Context, host.Disk) error) error {
	lane, t, err := e.targetOf(ctx, v)
	if err != nil {
		return err
	}
	t.drives = nil
	return e.onDisk(ctx, lane, t, f)
}

// targetOf returns the device of a volume and its lane. The lane has the partition in its name:
// a copy left on another drive does not block it.
func (e *Engine) targetOf(ctx context.Context, v *drivebay.Volume) (lane string, t writeTarget, err error) {
	d, err := e.activate(ctx, v)
	if err == nil && v.LUKSUUID != "" {
		d, err = e.plain(v)
	}
	t = writeTarget{device: d, drives: v.Location.Drives}
	if v.Location.VG == "" && v.LUKSUUID == "" && len(v.Location.Drives) > 0 {
		t.on = v.Location.Drives[0] // a logical volume is identified by its name
	}
	return "volume " + v.ID + " " + v.Location.Partition, t, err
}

// onDisk opens a device in a lane and calls f.
func (e *Engine) onDisk(ctx context.Context, lane string, t writeTarget, f func(context.Context, host.Disk) error) error {
	_, err := through(ctx, e, lane, programTime, func(ctx context.Context) (struct{}, error) {
		disk, err := e.openForWriting(ctx, t)
		if err != nil {
			return struct{}{}, err
		}
		defer disk.Close()
		return struct{}{}, f(ctx, disk)
	})
	return err
}

// contentOf detects what is written on a volume.
func (e *Engine) contentOf(ctx context.Context, v *drivebay.Volume) (drivebay.Content, error) {
	var c drivebay.Content
	err := e.lookAtDevice(ctx, v, func(_ context.Context, disk host.Disk) error {
		c = content.Detect(disk, disk.Size(), disk.BlockSize())
		if c.Kind == drivebay.ContentUnknown || c.Reason != "" {
			return fmt.Errorf("%w: what is written on it %w: %s", drivebay.ErrRefused, host.ErrUnreadable, c.Reason)
		}
		return nil
	})
	if err != nil { // the drive may answer later
		return drivebay.Content{}, err
	}
	return c, nil
}

// hasFS reports whether the filesystem with the chosen UUID is on the volume.
func hasFS(c drivebay.Content, v *drivebay.Volume) bool {
	for _, s := range c.Signatures {
		if s.Partition == "" && s.Format == v.FSType && strings.EqualFold(s.UUID, v.FSUUID) {
			return true
		}
	}
	return false
}

// cleared returns the step that clears old signatures from a new volume. Its piece of the drive
// is ours, whatever is left on it.
func (e *Engine) cleared(v *drivebay.Volume) step {
	return step{
		name: "clear",
		done: func(ctx context.Context) (bool, error) {
			c, err := e.contentOf(ctx, v)
			return c.Kind == drivebay.ContentBlank || hasFS(c, v), err
		},
		do: func(ctx context.Context) error { return e.onDevice(ctx, v, true, clearMarks) },
	}
}

// clearMarks zeroes both ends, and then every place that still has a signature.
func clearMarks(ctx context.Context, disk host.Disk) error {
	return clearStretch(ctx, disk, 0, disk.Size())
}

// clearStretch clears the signatures in a part of a device, which need not be a partition yet.
func clearStretch(ctx context.Context, disk host.Disk, start, size uint64) error {
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
			if at := s.Offset / mib * mib; at < size {
				if err := disk.Zero(ctx, start+at, min(mib, size-at)); err != nil {
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

// formatted returns the step that makes the filesystem. It works on a blank volume only.
func (e *Engine) formatted(v *drivebay.Volume) step {
	return step{
		name: "mkfs",
		done: func(ctx context.Context) (bool, error) {
			c, err := e.contentOf(ctx, v)
			return hasFS(c, v), err
		},
		do: func(ctx context.Context) error {
			return e.onDevice(ctx, v, false, func(ctx context.Context, disk host.Disk) error {
				if c := content.Detect(disk, disk.Size(), disk.BlockSize()); c.Kind != drivebay.ContentBlank {
					return fmt.Errorf("%w: it is not blank: %s", drivebay.ErrRefused, cannotBlank(c))
				}
				_, err := e.machine.Run(ctx, mkfs(v, disk.Path())...)
				return err
			})
		},
	}
}

// mkfs returns the command that makes the filesystem with the chosen UUID. It forces nothing:
// where a program would ask, it stops.
func mkfs(v *drivebay.Volume, dev string) []string {
	switch v.FSType {
	case "xfs":
		return []string{"mkfs.xfs", "-q", "-m", "uuid=" + v.FSUUID, dev}
	case "btrfs":
		return []string{"mkfs.btrfs", "-q", "-U", v.FSUUID, dev}
	}
	// A pod cannot use blocks that are reserved for root.
	return []string{"mkfs.ext4", "-q", "-m", "0", "-U", v.FSUUID, dev}
}
