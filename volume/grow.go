package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// tail bounds what a filesystem leaves unused of its device: less than one extent.
const tail = 4 << 20

// ExpandNode grows the filesystem of a volume to the size of its device, while it is in use. ExpandVolume
// has grown the device before.
func (e *Engine) ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error) {
	at, err := e.checkVolumePath(id, path)
	if err != nil {
		return 0, err
	}
	var size uint64
	err = e.onVolume(ctx, "expand", id, func(ctx context.Context, v drivebay.Volume) error {
		s, err := e.mountState(ctx, v)
		if err != nil {
			return err
		}
		size, err = s.expand(ctx, at, r, secrets)
		return err
	})
	if err != nil { // the work may go on, and still set the size
		return 0, err
	}
	return size, nil
}

func (s *mountState) expand(ctx context.Context, at mountPath, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error) {
	have := s.at(at)
	if have == nil && len(s.ours(at)) == 0 {
		return 0, fmt.Errorf("%w: it is neither staged nor published at %s", drivebay.ErrNotFound, at)
	}
	size := s.v.Size
	switch {
	case s.untrusted(s.v.Location.Drives):
		return 0, s.trusted(s.v.Location.Drives)
	case r.Limit > 0 && r.Required > r.Limit:
		return 0, fmt.Errorf("%w: the required size %s is larger than the limit %s", drivebay.ErrRange, sizeText(r.Required), sizeText(r.Limit))
	case r.Required > size:
		return 0, fmt.Errorf("%w: the volume has %s, and the controller must expand it to %s first", drivebay.ErrRange, sizeText(size), sizeText(r.Required))
	case r.Limit > 0 && size > r.Limit:
		return 0, fmt.Errorf("%w: the volume already has %s, more than the limit %s", drivebay.ErrRange, sizeText(size), sizeText(r.Limit))
	case s.v.CSIStatus == drivebay.CSIResizing:
		return 0, fmt.Errorf("%w: its device is being grown", drivebay.ErrPending)
	}
	if err := s.widen(ctx, secrets); err != nil {
		return 0, s.failed(err)
	}
	if err := s.grow(ctx, s.writableAt(at)); err != nil {
		return 0, s.failed(err)
	}
	return size, s.growDone()
}

// writableAt returns the path to grow a filesystem through: not one with a read-only mount.
func (s *mountState) writableAt(at mountPath) mountPath {
	if p := s.staging(); p != nil && !p.ReadOnly {
		if staged, err := s.checkPath(p.Path); err == nil && s.live(staged) {
			return staged
		}
	}
	return at
}

func (s *mountState) grow(ctx context.Context, at mountPath) error {
	if s.v.Mode != drivebay.ModeFS {
		return nil
	}
	return touch(ctx, s.Engine, &s.v, growTime, func(ctx context.Context) error {
		return s.machine.Grow(ctx, at.Place, s.v.FSType)
	})
}

// grown grows a filesystem that was just mounted and is smaller than its device: the device was grown
// while it was not in use, or the volume is a copy of a smaller one.
func (s *mountState) grown(ctx context.Context, at mountPath) error {
	if s.v.Mode != drivebay.ModeFS {
		return s.growDone()
	}
	if p := s.staging(); p == nil || p.ReadOnly {
		return nil
	}
	due := s.growing()
	if !due {
		err := touch(ctx, s.Engine, &s.v, probeTime, func(ctx context.Context) error {
			disk, err := s.machine.OpenDisk(ctx, s.d.dev, false)
			if err != nil {
				return err
			}
			defer disk.Close()
			size, err := fsSize(disk, s.v.FSType)
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
	if err := s.grow(ctx, at); err != nil {
		return err
	}
	return s.growDone()
}

// growing reports whether the device has been grown and the filesystem has not.
func (s *mountState) growing() bool {
	return s.v.CSIStatus == drivebay.CSIResized || s.v.CSIStatus == drivebay.CSIFailed && s.v.State().Before == drivebay.CSIResized
}

func (s *mountState) growDone() error {
	if !s.growing() {
		return nil
	}
	_, err := s.changeSoon(s.v.ID, func(r *drivebay.VolumeRecord) error {
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
