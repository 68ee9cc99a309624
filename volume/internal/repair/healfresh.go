package repair

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/watch"
)

// needFresh returns why a filesystem has to be mounted again. None recovers from an error while it is
// mounted. A remount of ext4 is refused, since Linux 6.15 with another message (fs/ext4/super.c,
// __ext4_remount: EXT4_MF_FS_ABORTED), and so is one of btrfs (fs/btrfs/super.c, btrfs_reconfigure:
// "Remounting read-write after error is not allowed"). A remount of an XFS that has shut down succeeds and
// changes nothing (tried, Linux 6.18). Mounted again, all three replay their journal and work again.
func needFresh(g *symptoms) (why string, cannot error) {
	p := g.staging()
	if p == nil || !p.live || p.ReadOnly || !g.v.HasFilesystem() {
		return "", nil
	}
	switch {
	case g.facts.FS != nil && g.facts.FS.Shutdown:
		why = p.Path + ": its filesystem has shut down"
	case p.readOnly:
		why = p.Path + ": its filesystem is read-only without being asked to"
	default:
		return "", nil
	}
	return why, g.notFresh()
}

// notFresh returns why a filesystem must not be mounted again.
func (g *symptoms) notFresh() error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{drivebay.ErrRefused}, args...)...)
	}
	for _, d := range g.facts.Drives {
		switch {
		case d.Health == drivebay.HealthBad:
			return refuse("drive %s is BAD: what is on it has to be moved, not written to", d.ID)
		case d.Kernel != nil && d.Kernel.Frozen > 0:
			return refuse("drive %s does not answer", d.ID)
		case d.ReadOnly:
			return refuse("drive %s takes no writes", d.ID)
		}
	}
	lv := g.facts.LV
	switch {
	case g.corrupt():
		return errCorrupt
	case lv != nil && (lv.OutOfData || lv.DataPercent != nil && *lv.DataPercent >= 100):
		return refuse("its thin pool is full")
	case len(g.others) > 0:
		return refuse("it is also mounted at %s", strings.Join(g.others, ", "))
	case !g.known:
		return errOptions
	}
	return nil
}

// mountAfresh unmounts a filesystem everywhere and mounts it again. If that fails, for example because a
// container still uses the filesystem, it restores the mounts that it can.
func mountAfresh(ctx context.Context, p *diagnosis) error {
	err := p.takeDown(ctx)
	if err == nil {
		err = p.again(ctx)
	}
	if err != nil {
		ctx = context.WithoutCancel(ctx)
		return p.left(ctx, err, p.putBack(ctx))
	}
	p.e.Watch.BeginScrub(p.V, watch.Suspicion{}) // checks run one at a time: another may be under way
	return nil
}

// left adds to a failure the paths where the volume is not mounted now, and why.
func (p *diagnosis) left(ctx context.Context, cause, why error) error {
	s, err := p.afterThat(ctx)
	if err != nil {
		return fmt.Errorf("%w; what is mounted now is not known: %w", cause, err)
	}
	var paths []string
	for i := range s.signs.paths {
		if one := &s.signs.paths[i]; !one.live {
			paths = append(paths, one.Path)
		}
	}
	switch {
	case len(paths) == 0:
		return cause
	case why == nil:
		return fmt.Errorf("%w; it is not mounted at %s", cause, strings.Join(paths, ", "))
	}
	return fmt.Errorf("%w; it is not mounted at %s now: %w; `drivebay heal %s` mounts it there when its disk can be read", cause, strings.Join(paths, ", "), why, p.V.ID)
}

func (p *diagnosis) takeDown(ctx context.Context) error {
	p.e.Watch.StopScrub(ctx, p.V.ID)
	for _, one := range append(p.signs.targets(), p.signs.staging()) {
		if err := p.clear(ctx, one.at); err != nil {
			return fmt.Errorf("%s: %w", one.Path, err)
		}
	}
	return p.Unused(ctx)
}

// putBack mounts again what was unmounted. A filesystem that a container still uses is the same as before,
// and can be mounted as writable only while it is writable (fs/super.c, get_tree_bdev: EBUSY). One that
// cannot be mounted as writable for another reason is mounted read-only, which it was in effect.
func (p *diagnosis) putBack(ctx context.Context) error {
	was := p.Counters.Of(p.V.ID).Read()
	err := p.again(ctx)
	if err != nil && !errors.Is(err, drivebay.ErrTimeout) {
		err = p.readOnlyAgain(ctx)
	}
	p.Counters.Of(p.V.ID).Write(func(m *mounts.ProbeResult) { m.Shutdown, m.GaveUp = was.Shutdown, was.GaveUp })
	return err
}

func (p *diagnosis) readOnlyAgain(ctx context.Context) error {
	s, err := p.afterThat(ctx)
	if err != nil {
		return err
	}
	if was := s.signs.staging(); !was.live {
		if err := s.Mount(ctx, was.at, s.signs.options, true); err != nil {
			return err
		}
	}
	return s.rebind(ctx)
}

// again mounts the recorded paths that are not mounted.
func (p *diagnosis) again(ctx context.Context) error {
	s, err := p.afterThat(ctx)
	if err != nil {
		return err
	}
	if was := s.signs.staging(); !was.live {
		if err := s.mountAs(ctx, was); err != nil {
			return err
		}
	}
	return s.rebind(ctx)
}

// rebind binds the staged volume to the paths that lack it.
func (p *diagnosis) rebind(ctx context.Context) error {
	s, err := p.afterThat(ctx)
	if err != nil {
		return err
	}
	return bindAgain(ctx, s)
}

// afterThat diagnoses the volume again.
func (p *diagnosis) afterThat(ctx context.Context) (*diagnosis, error) {
	return p.e.diagnose(ctx, p.V.ID, p.signs.r, false)
}
