package mounts

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// tail bounds what a filesystem leaves unused of its device: less than one extent.
const tail = 4 << 20

// Expand grows the filesystem of a volume to the size of its device.
func (s *MountState) Expand(ctx context.Context, at MountPath, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error) {
	size := s.V.Size
	switch {
	case s.Inventory.Untrusted(s.V.Location.Drives):
		return 0, s.Partitions.Trusted(s.V.Location.Drives)
	case r.Limit > 0 && r.Required > r.Limit:
		return 0, fmt.Errorf("%w: the required size %s is larger than the limit %s", drivebay.ErrRange, partitions.SizeText(r.Required), partitions.SizeText(r.Limit))
	case r.Required > size:
		return 0, fmt.Errorf("%w: the volume has %s, and the controller must expand it to %s first", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(r.Required))
	case r.Limit > 0 && size > r.Limit:
		return 0, fmt.Errorf("%w: the volume already has %s, more than the limit %s", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(r.Limit))
	case s.V.CSIStatus == drivebay.CSIResizing:
		return 0, fmt.Errorf("%w: its device is being grown", drivebay.ErrPending)
	}
	if err := s.growLayers(ctx, device.Opening{Secrets: secrets}, s.filesystem(s.writableAt(at), nil, false)...); err != nil {
		return 0, s.Failed(err)
	}
	return size, s.growDone()
}

// writableAt returns the path to grow a filesystem through: not one with a read-only mount.
func (s *VolumeMounts) writableAt(at MountPath) MountPath {
	if p := s.Staging(); p != nil && !p.ReadOnly {
		if staged, err := s.CheckPath(p.Path); err == nil && s.live(staged) {
			return staged
		}
	}
	return at
}

// Grown grows a filesystem that was just mounted and is smaller than its device: the device was grown
// while it was not in use, or the volume is a copy of a smaller one.
func (s *MountState) Grown(ctx context.Context, at MountPath) error {
	if !s.V.HasFilesystem() {
		return s.growDone()
	}
	if p := s.Staging(); p == nil || p.ReadOnly || s.mayGrow() != nil { // it can be used as it is
		return nil
	}
	due := s.growing()
	if !due {
		err := steps.Touch(ctx, s.Steps, &s.V, steps.ProbeTime, func(ctx context.Context) error {
			disk, err := s.Device.OpenSame(ctx, s.D, false)
			if err != nil {
				return err
			}
			defer disk.Close()
			size, err := device.FilesystemSize(disk, s.V.FSType)
			due = err == nil && size+tail <= disk.Size()
			return err
		})
		if err != nil {
			return err
		}
	}
	if !due {
		return nil
	}
	if err := s.filesystem(at, nil, false).Grow(ctx, device.Opening{}); err != nil {
		return err
	}
	return s.growDone()
}

// mayGrow refuses to grow a filesystem on a drive that is not claimed.
func (s *MountState) mayGrow() error { return s.Device.MayWrite(s.V.Location.Drives...) }

// growing reports whether the device has been grown and the filesystem has not.
func (s *VolumeMounts) growing() bool {
	return s.V.CSIStatus == drivebay.CSIResized || s.V.CSIStatus == drivebay.CSIFailed && s.V.State().Before == drivebay.CSIResized
}

func (s *MountState) growDone() error {
	if !s.growing() {
		return nil
	}
	_, err := s.Ledger.ChangeSoon(s.V.ID, func(r *drivebay.VolumeRecord) error {
		event := drivebay.CSIDone
		if r.Volume.CSIStatus == drivebay.CSIFailed {
			event = drivebay.CSIClear
		}
		v, err := r.Volume.Moved(event)
		if err == nil {
			r.Volume = v
		}
		return err
	})
	return err
}
