package mounts

import (
	"context"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mountoptions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// trimTime bounds one pass over the free space of a filesystem.
const trimTime = 30 * time.Minute

// Reclaim gives the free space of a filesystem back to its drive.
func (s *MountState) Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (out drivebay.Reclaimed, err error) {
	at, mounted := s.anywhere()
	if !mounted {
		if r.Path != "" || len(s.Now) > 0 {
			return out, fmt.Errorf("%w: its filesystem is not mounted where it should be: heal it first", drivebay.ErrBusy)
		}
		if s.D, err = s.layers().Open(ctx, device.Opening{}); err != nil {
			return out, steps.InOurWords(err)
		}
		defer func() {
			if err := s.LeaveAsFound(context.WithoutCancel(ctx), &s.V); err != nil {
				s.Log.Warn("device not deactivated", "op", "reclaim", "volume", s.V.ID, "err", err)
			}
		}()
	}
	out.Before = s.taken(ctx)
	err = steps.Touch(ctx, s.Steps, &s.V, trimTime, func(ctx context.Context) error {
		if mounted {
			return s.Machine.Trim(ctx, at.Place)
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
func (s *VolumeMounts) anywhere() (MountPath, bool) {
	for _, p := range s.V.Publications {
		if at, err := s.CheckPath(p.Path); err == nil && s.live(at) {
			return at, true
		}
	}
	return MountPath{}, false
}

func (s *MountState) trimUnmounted(ctx context.Context) error {
	disk, err := s.Device.OpenForWriting(ctx, s.layers().Target(&s.V, s.D))
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := ProveFS(disk, &s.V); err != nil {
		return err
	}
	return s.Machine.TrimUnmounted(ctx, host.NewMount{Device: disk.Path(), FS: s.V.FSType, Options: mountoptions.Own(&s.V, nil)})
}

// taken returns how much of its pool a thin volume uses; nil for other volumes: the use of their
// drive is not known.
func (s *VolumeMounts) taken(ctx context.Context) *uint64 {
	l := s.V.Location
	if l.Kind != drivebay.LocationThin {
		return nil
	}
	s.Mirror.ReportAgain(ctx, &s.V)
	g := s.Groups.LVMNow().Group(l.VG)
	if g == nil || g.LV(l.LV) == nil || !g.LV(l.LV).Data.Known {
		return nil
	}
	n := uint64(g.LV(l.LV).Data.Value / 100 * float64(g.LV(l.LV).Size))
	return &n
}
