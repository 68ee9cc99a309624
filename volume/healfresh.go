package volume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// needFresh: no filesystem comes back from an error while it is mounted. A remount of
// ext4 is refused, since Linux 6.15 in other words (fs/ext4/super.c, __ext4_remount:
// EXT4_MF_FS_ABORTED), so is one of btrfs (fs/btrfs/super.c, btrfs_reconfigure:
// "Remounting read-write after error is not allowed"), and that of an XFS that has
// shut down says yes and changes nothing (tried, Linux 6.18). Mounted anew all three
// read their journal and go on.
func needFresh(g *signs) (why string, cannot error) {
	p := g.staging()
	if p == nil || !p.live || p.ReadOnly || g.v.Mode != drivebay.ModeFS {
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

// notFresh is what speaks against mounting a filesystem anew.
func (g *signs) notFresh() error {
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

// mountAfresh unmounts a filesystem everywhere and mounts it again. Who still has it
// in use, in a container say, keeps it as it is: then it is put back as it was. So is
// what can be when it cannot be mounted as it was.
func mountAfresh(ctx context.Context, p *patient) error {
	err := p.takeDown(ctx)
	if err == nil {
		err = p.again(ctx)
	}
	if err != nil {
		ctx = context.WithoutCancel(ctx)
		return p.left(ctx, err, p.putBack(ctx))
	}
	p.beginScrub(p.v, suspicion{}) // one at a time: another may be under way
	return nil
}

// left adds to the cause of a failure which paths are without the volume now, and why.
func (p *patient) left(ctx context.Context, cause, why error) error {
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
	return fmt.Errorf("%w; it is not mounted at %s now: %w; `drivebay heal %s` mounts it there when its disk can be read", cause, strings.Join(paths, ", "), why, p.v.ID)
}

func (p *patient) takeDown(ctx context.Context) error {
	p.stopScrub(ctx, p.v.ID)
	for _, one := range append(p.signs.targets(), p.signs.staging()) {
		if err := p.clear(ctx, one.at); err != nil {
			return fmt.Errorf("%s: %w", one.Path, err)
		}
	}
	return p.unused(ctx)
}

// putBack mounts again what was taken down: a filesystem that somebody still has in
// use is the same as before, and mounted as writable only while it calls itself so
// (fs/super.c, get_tree_bdev: EBUSY). One that cannot be mounted as writable for
// another reason is mounted read-only, which it was in effect.
func (p *patient) putBack(ctx context.Context) error {
	was := p.gauges.of(p.v.ID).read()
	err := p.again(ctx)
	if err != nil && !errors.Is(err, drivebay.ErrTimeout) {
		err = p.readOnlyAgain(ctx)
	}
	p.gauges.of(p.v.ID).write(func(m *measured) { m.shutdown, m.gaveUp = was.shutdown, was.gaveUp })
	return err
}

func (p *patient) readOnlyAgain(ctx context.Context) error {
	s, err := p.afterThat(ctx)
	if err != nil {
		return err
	}
	if was := s.signs.staging(); !was.live {
		if err := s.mount(ctx, was.at, s.signs.options, true); err != nil {
			return err
		}
	}
	return s.rebind(ctx)
}

// again mounts what is not mounted of what is remembered.
func (p *patient) again(ctx context.Context) error {
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

// rebind binds what is staged to the paths that lack it.
func (p *patient) rebind(ctx context.Context) error {
	s, err := p.afterThat(ctx)
	if err != nil {
		return err
	}
	return bindAgain(ctx, s)
}

// afterThat is the patient as he is now.
func (p *patient) afterThat(ctx context.Context) (*patient, error) {
	return p.patient(ctx, p.v.ID, p.signs.r, false)
}
