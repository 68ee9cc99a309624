package repair

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mounts"
)

// Repairs of mounts.

// errOptions says that no record has the options of a mount.
var errOptions = fmt.Errorf("%w: the options that it was mounted with are kept nowhere: they have to come with the call, or unstage and stage the volume", drivebay.ErrRefused)

var errCorrupt = fmt.Errorf("%w: a check has called it corrupted: unstage it and have it repaired", drivebay.ErrRefused)

func needStaged(g *symptoms) (why string, cannot error) {
	p := g.staging()
	if p == nil || p.live || !g.here || !g.v.HasFilesystem() {
		return "", nil
	}
	why = p.Path + ": it is not mounted there"
	switch {
	case p.stranger != "":
		return why, fmt.Errorf("%w: something else is mounted there, unmount that first: %s", drivebay.ErrRefused, p.stranger)
	case g.bindSource() == nil && g.corrupt():
		return why, errCorrupt
	case g.bindSource() == nil && !g.known:
		return why, errOptions
	}
	return why, nil
}

// bindSource returns a path of a pod that can be bound back to where the volume was staged: it shows the
// same filesystem with the same options.
func (g *symptoms) bindSource() *mountPoint {
	staged := g.staging()
	for _, t := range g.targets() {
		if t.live && staged != nil && t.ReadOnly == staged.ReadOnly && !t.readOnly {
			return t
		}
	}
	return nil
}

// stageAgain mounts again, as it was, what another program unmounted.
func stageAgain(ctx context.Context, p *diagnosis) error {
	was, from := p.signs.staging(), p.signs.bindSource()
	if err := p.clear(ctx, was.at); err != nil {
		return err
	}
	if from == nil {
		return p.mountAs(ctx, was)
	}
	if err := p.Bind(ctx, from.at, was.at, was.ReadOnly); err != nil {
		return err
	}
	return p.remember(was.Publication)
}

// mountAs mounts a volume where it was staged, as it was before.
func (p *diagnosis) mountAs(ctx context.Context, was *mountPoint) error {
	if err := p.Mount(ctx, was.at, p.signs.options, was.ReadOnly); err != nil {
		return err
	}
	if err := p.remember(was.Publication); err != nil {
		return err
	}
	return p.Grown(ctx, was.at)
}

// remember records that a path shows the current device.
func (p *diagnosis) remember(pub drivebay.Publication) error {
	pub.Device, pub.Boot = p.D.Num+" "+p.D.Name, p.e.Mirror.Boot()
	for i := range p.Now {
		if p.Now[i].Path == pub.Path {
			p.Now[i] = pub
		}
	}
	return p.Keep()
}

func needBound(g *symptoms) (why string, cannot error) {
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
			cannot = fmt.Errorf("%w: %s: something else is mounted there, unmount that first: %s", drivebay.ErrRefused, t.Path, t.stranger)
		}
	}
	staged := g.staging()
	_, unstaged := needStaged(g)
	switch {
	case len(lost) == 0:
		return "", nil
	case g.v.HasFilesystem() && staged == nil:
		cannot = fmt.Errorf("%w: it is staged nowhere", drivebay.ErrRefused)
	case unstaged != nil: // there is nothing to bind
		cannot = fmt.Errorf("it cannot be mounted at %s: %w", staged.Path, unstaged)
	}
	return strings.Join(lost, ", ") + ": it is not mounted there, or is read-only there although the pod may write", cannot
}

// bindAgain binds the volume again to the paths of pods that lack it.
func bindAgain(ctx context.Context, p *diagnosis) error {
	var from mounts.MountPath
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
		if err := p.Bind(ctx, from, t.at, t.ReadOnly); err != nil {
			return err
		}
		if err := p.remember(t.Publication); err != nil {
			return err
		}
	}
	return nil
}
