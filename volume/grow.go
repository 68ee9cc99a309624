package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// tail is what a filesystem may leave of its device: less than one extent.
const tail = 4 << 20

// ExpandNode makes the filesystem of a volume as large as its device, while it is
// in use. The device has been grown before, by ExpandVolume.
func (e *Engine) ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error) {
	at, err := e.spotOfVolume(id, path)
	if err != nil {
		return 0, err
	}
	var size uint64
	err = e.onVolume(ctx, "expand", id, func(ctx context.Context, v drivebay.Volume) error {
		s, err := e.scene(ctx, v)
		if err != nil {
			return err
		}
		size, err = s.expand(ctx, at, r, secrets)
		return err
	})
	return size, err
}

func (s *scene) expand(ctx context.Context, at spot, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error) {
	have := s.at(at)
	if have == nil && len(s.ours(at)) == 0 {
		return 0, fmt.Errorf("%w: it is neither staged nor published at %s", drivebay.ErrNotFound, at)
	}
	size := s.v.Size
	switch {
	case s.untrusted(s.v.Location.Drives):
		return 0, s.trusted(s.v.Location.Drives)
	case r.Limit > 0 && r.Required > r.Limit:
		return 0, fmt.Errorf("%w: at least %d and at most %d bytes", drivebay.ErrRange, r.Required, r.Limit)
	case r.Required > size:
		return 0, fmt.Errorf("%w: it has %d bytes, and is to be grown to %d by the controller first", drivebay.ErrRange, size, r.Required)
	case r.Limit > 0 && size > r.Limit:
		return 0, fmt.Errorf("%w: it has %d bytes already", drivebay.ErrRange, size)
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

// writableAt is where a filesystem can be told to grow: not through a mount that
// is read-only.
func (s *scene) writableAt(at spot) spot {
	if p := s.staging(); p != nil && !p.ReadOnly {
		if staged, err := s.spot(p.Path); err == nil && s.live(staged) {
			return staged
		}
	}
	return at
}

func (s *scene) grow(ctx context.Context, at spot) error {
	if s.v.Mode != drivebay.ModeFS {
		return nil
	}
	return touch(ctx, s.Engine, &s.v, growTime, func(ctx context.Context) error {
		return s.machine.Grow(ctx, at.Place, s.v.FSType)
	})
}

// grown grows a filesystem that was just mounted and is smaller than its device:
// that was grown while nobody used it, or the volume is a copy of a smaller one.
func (s *scene) grown(ctx context.Context, at spot) error {
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

// growing says that the device has been grown and the filesystem has not.
func (s *scene) growing() bool {
	return s.v.CSIStatus == drivebay.CSIResized || s.v.CSIStatus == drivebay.CSIFailed && s.v.State().Before == drivebay.CSIResized
}

func (s *scene) growDone() error {
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
