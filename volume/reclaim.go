package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// trimTime bounds one pass over the free space of a filesystem.
const trimTime = 30 * time.Minute

// Reclaim makes a filesystem discard its unused blocks on its drive or in its thin pool. It mounts an
// unmounted filesystem without a path, visible to no other process: that mount ends with the call or
// the daemon, and cannot be left behind.
func (e *Engine) Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error) {
	var out, came drivebay.Reclaimed
	err := e.onVolume(ctx, "reclaim", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if err := e.mayReclaim(ctx, &v, r); err != nil {
			return err
		}
		s, err := e.mountState(ctx, v)
		if err != nil {
			return err
		}
		came, err = s.reclaim(ctx, r)
		return err
	})
	if ctx.Err() == nil {
		out = came
	}
	return out, err
}

// mayReclaim returns why nothing of a volume can be discarded.
func (e *Engine) mayReclaim(ctx context.Context, v *drivebay.Volume, r drivebay.ReclaimRequest) error {
	switch {
	case r.Block != nil && *r.Block == (v.Mode == drivebay.ModeFS):
		return fmt.Errorf("%w: it is a volume of mode %v", drivebay.ErrInvalid, v.Mode)
	case v.Mode != drivebay.ModeFS:
		return fmt.Errorf("%w: not supported for a block volume: only its user knows which blocks are in use", drivebay.ErrNoSupport)
	case v.LUKSUUID != "": // a discard would show on the drive which blocks are free (cryptsetup(8), --allow-discards)
		return fmt.Errorf("%w: discards are disabled for an encrypted volume", drivebay.ErrNoSupport)
	}
	if err := errors.Join(canUse(v, false, "", nil), e.mayWrite(v.Location.Drives...)); err != nil {
		return err
	}
	return e.hasPaths(ctx, v, r.Path, r.Staging)
}

func (s *mountState) reclaim(ctx context.Context, r drivebay.ReclaimRequest) (out drivebay.Reclaimed, err error) {
	at, mounted := s.anywhere()
	if !mounted {
		if r.Path != "" || len(s.now) > 0 {
			return out, fmt.Errorf("%w: its filesystem is not mounted where it should be: heal it first", drivebay.ErrBusy)
		}
		if s.d, err = s.activate(ctx, &s.v); err != nil {
			return out, inOurWords(err)
		}
		defer func() {
			if err := s.leaveAsFound(context.WithoutCancel(ctx), &s.v); err != nil {
				s.log.Warn("device not deactivated", "op", "reclaim", "volume", s.v.ID, "err", err)
			}
		}()
	}
	out.Before = s.taken(ctx)
	err = touch(ctx, s.Engine, &s.v, trimTime, func(ctx context.Context) error {
		if mounted {
			return s.machine.Trim(ctx, at.Place)
		}
		return s.trimUnmounted(ctx)
	})
	if err != nil {
		return drivebay.Reclaimed{}, err
	}
	out.After = s.taken(ctx)
	return out, nil
}

// anywhere returns a path at which the filesystem is mounted now.
func (s *mountState) anywhere() (mountPath, bool) {
	for _, p := range s.v.Publications {
		if at, err := s.checkPath(p.Path); err == nil && s.live(at) {
			return at, true
		}
	}
	return mountPath{}, false
}

func (s *mountState) trimUnmounted(ctx context.Context) error {
	disk, err := s.openForWriting(ctx, writeTarget{device: s.d, drives: s.v.Location.Drives})
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := proveFS(disk, &s.v); err != nil {
		return err
	}
	return s.machine.TrimUnmounted(ctx, host.NewMount{Device: disk.Path(), FS: s.v.FSType, Options: ownOptions(&s.v, nil)})
}

// taken returns how much of its pool a thin volume uses; nil for other volumes: the use of their
// drive is not known.
func (s *mountState) taken(ctx context.Context) *uint64 {
	l := s.v.Location
	if l.Kind != drivebay.LocationThin {
		return nil
	}
	s.reportAgain(ctx, &s.v)
	g := s.lvmNow().group(l.VG)
	if g == nil || g.LV(l.LV) == nil || !g.LV(l.LV).Data.Known {
		return nil
	}
	n := uint64(g.LV(l.LV).Data.Value / 100 * float64(g.LV(l.LV).Size))
	return &n
}
