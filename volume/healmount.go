package volume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Repairs of mounts.

// errOptions: what a mount was made with is written down nowhere.
var errOptions = fmt.Errorf("%w: the options that it was mounted with are kept nowhere: they have to come with the call, or unstage and stage the volume", drivebay.ErrRefused)

func needStaged(g *signs) (why string, cannot error) {
	p := g.staging()
	if p == nil || p.live || !g.here || g.v.Mode != drivebay.ModeFS {
		return "", nil
	}
	why = p.Path + ": it is not mounted there"
	switch {
	case p.stranger != "":
		return why, fmt.Errorf("%w: something else is mounted there: %s", drivebay.ErrRefused, p.stranger)
	case g.twin() == nil && !g.known:
		return why, errOptions
	}
	return why, nil
}

// twin is a path of a pod that can be bound back to where the volume was staged: it
// has the same filesystem with the same options.
func (g *signs) twin() *mountPoint {
	staged := g.staging()
	for _, t := range g.targets() {
		if t.live && staged != nil && t.ReadOnly == staged.ReadOnly && !t.readOnly {
			return t
		}
	}
	return nil
}

// stageAgain mounts what was unmounted behind our back, as it was.
func stageAgain(ctx context.Context, p *patient) error {
	was, from := p.signs.staging(), p.signs.twin()
	if err := p.clear(ctx, was.at); err != nil {
		return err
	}
	if from == nil {
		return p.mountAs(ctx, was)
	}
	if err := p.bind(ctx, from.at, was.at, was.ReadOnly); err != nil {
		return err
	}
	return p.remember(was.Publication)
}

// mountAs mounts a volume where it was staged, and as it was.
func (p *patient) mountAs(ctx context.Context, was *mountPoint) error {
	if err := p.mount(ctx, was.at, p.signs.options, was.ReadOnly); err != nil {
		return err
	}
	if err := p.remember(was.Publication); err != nil {
		return err
	}
	return p.grown(ctx, was.at)
}

// remember writes down that a path shows the device of now.
func (p *patient) remember(pub drivebay.Publication) error {
	pub.Device, pub.Boot = p.d.num+" "+p.d.name, p.boot()
	for i := range p.now {
		if p.now[i].Path == pub.Path {
			p.now[i] = pub
		}
	}
	return p.keep(nil)
}

func needBound(g *signs) (why string, cannot error) {
	if !g.here {
		return "", nil
	}
	var lost []string
	for _, t := range g.targets() {
		if t.live {
			continue
		}
		lost = append(lost, t.Path)
		if t.stranger != "" {
			cannot = fmt.Errorf("%w: %s: something else is mounted there: %s", drivebay.ErrRefused, t.Path, t.stranger)
		}
	}
	staged := g.staging()
	switch {
	case len(lost) == 0:
		return "", nil
	case g.v.Mode == drivebay.ModeFS && staged == nil:
		cannot = fmt.Errorf("%w: it is staged nowhere", drivebay.ErrRefused)
	case staged != nil && staged.stranger != "":
		cannot = fmt.Errorf("%w: it cannot be mounted at %s", drivebay.ErrRefused, staged.Path)
	}
	return strings.Join(lost, ", ") + ": it is not to be seen there", cannot
}

// bindAgain has the paths of pods show the volume again.
func bindAgain(ctx context.Context, p *patient) error {
	var from spot
	if staged := p.signs.staging(); staged != nil {
		from = staged.at
	}
	for _, t := range p.signs.targets() {
		if t.live {
			continue
		}
		if err := p.clear(ctx, t.at); err != nil {
			return err
		}
		if err := p.bind(ctx, from, t.at, t.ReadOnly); err != nil {
			return err
		}
		if err := p.remember(t.Publication); err != nil {
			return err
		}
	}
	return nil
}

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
		why = p.Path + ": its filesystem is read-only, and nobody asked for that"
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
		}
	}
	lv := g.facts.LV
	switch {
	case g.corrupt():
		return refuse("a check has called it corrupted: unstage it and have it repaired")
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
// in use, in a container say, keeps it as it is: then it is put back as it was.
func mountAfresh(ctx context.Context, p *patient) error {
	err := p.takeDown(ctx)
	if err != nil {
		return errors.Join(err, p.putBack(context.WithoutCancel(ctx)))
	}
	if err := p.again(ctx); err != nil {
		return err
	}
	p.beginScrub(p.v, suspicion{}) // one at a time: another may be under way
	return nil
}

func (p *patient) takeDown(ctx context.Context) error {
	p.stopScrub(ctx, p.v.ID)
	for _, one := range append(p.signs.targets(), p.signs.staging()) {
		if err := p.clear(ctx, one.at); err != nil {
			return fmt.Errorf("%s: %w", one.Path, err)
		}
	}
	return touch(ctx, p.Engine, &p.v, mountTime, func(ctx context.Context) error {
		disk, err := p.machine.OpenDisk(ctx, p.d.dev, true)
		if errors.Is(err, host.ErrBusy) {
			return fmt.Errorf("a container still has it: it has to end first: %w", err)
		}
		if err == nil {
			disk.Close()
		}
		return err
	})
}

// putBack mounts again what was taken down: a filesystem that somebody still has in
// use is the same as before, and mounted as writable only while it calls itself so
// (fs/super.c, get_tree_bdev: EBUSY).
func (p *patient) putBack(ctx context.Context) error {
	shutdown := p.signs.facts.FS != nil && p.signs.facts.FS.Shutdown
	err := p.again(ctx)
	if errors.Is(err, drivebay.ErrBusy) {
		was := p.signs.staging()
		if err = p.mount(ctx, was.at, p.signs.options, true); err == nil {
			err = p.rebind(ctx)
		}
	}
	if shutdown {
		p.gauges.of(p.v.ID).write(func(m *measured) { m.shutdown = true })
	}
	return err
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
