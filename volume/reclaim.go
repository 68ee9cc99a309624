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

// Reclaim has a filesystem tell its drive, or its thin pool, what it has no use for.
// Of one that nobody has mounted the mount is nowhere to be seen, and ends with the
// call, or with us: it cannot be left behind, and no path is made for it.
func (e *Engine) Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error) {
	var out, came drivebay.Reclaimed
	err := e.onVolume(ctx, "reclaim", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if err := e.mayReclaim(ctx, &v, r); err != nil {
			return err
		}
		s, err := e.scene(ctx, v)
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

// mayReclaim says of what nothing can be discarded.
func (e *Engine) mayReclaim(ctx context.Context, v *drivebay.Volume, r drivebay.ReclaimRequest) error {
	switch {
	case r.Block != nil && *r.Block == (v.Mode == drivebay.ModeFS):
		return fmt.Errorf("%w: it is a volume of mode %v", drivebay.ErrInvalid, v.Mode)
	case v.Mode != drivebay.ModeFS:
		return fmt.Errorf("%w: what of a block volume is in use, only its user knows", drivebay.ErrNoSupport)
	case v.LUKSUUID != "": // it would tell whoever has the drive what is free (cryptsetup(8), --allow-discards)
		return fmt.Errorf("%w: an encrypted volume tells its drive nothing of what is in it", drivebay.ErrNoSupport)
	}
	if err := errors.Join(canUse(v, false, "", nil), e.mayWrite(v.Location.Drives...)); err != nil {
		return err
	}
	return e.hasPaths(ctx, v, r.Path, r.Staging)
}

func (s *scene) reclaim(ctx context.Context, r drivebay.ReclaimRequest) (out drivebay.Reclaimed, err error) {
	at, mounted := s.anywhere()
	if !mounted {
		if r.Path != "" || len(s.now) > 0 {
			return out, fmt.Errorf("%w: its filesystem is not mounted where it should be: heal it first", drivebay.ErrBusy)
		}
		if s.d, err = s.activate(ctx, &s.v); err != nil {
			return out, inOurWords(err)
		}
		defer func() {
			if err := s.rest(context.WithoutCancel(ctx), &s.v); err != nil {
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

// anywhere is a path at which the filesystem is mounted now.
func (s *scene) anywhere() (spot, bool) {
	for _, p := range s.v.Publications {
		if at, err := s.spot(p.Path); err == nil && s.live(at) {
			return at, true
		}
	}
	return spot{}, false
}

func (s *scene) trimUnmounted(ctx context.Context) error {
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

// taken is how much of its pool a thin volume takes; of others nobody can tell what
// their drive has for them.
func (s *scene) taken(ctx context.Context) *uint64 {
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
