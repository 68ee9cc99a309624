package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// repairers are the programs that repair what is safe to repair without a question; done has the exit
// statuses of success other than 0. e2fsck(8): -p leaves what needs a decision, and exits with 4 then; 1
// means that it has repaired. xfs_repair(8) refuses a log that was not replayed, and asks nothing.
var repairers = map[string]struct {
	argv []string
	done []int
}{
	"ext4": {[]string{"e2fsck", "-f", "-p"}, []int{1, 2, 3}},
	"xfs":  {[]string{"xfs_repair"}, nil},
}

func needFsck(g *symptoms) (why string, cannot error) {
	if !g.r.Fsck || g.v.Mode != drivebay.ModeFS {
		return "", nil
	}
	why = "requested"
	switch _, can := repairers[g.v.FSType]; {
	case !g.here:
		return why, fmt.Errorf("%w: its drive is not here", drivebay.ErrNotFound)
	case g.used():
		return why, fmt.Errorf("%w: %s has it: unstage it first", drivebay.ErrBusy, g.v.Publications[0].Path)
	case len(g.others) > 0:
		return why, fmt.Errorf("%w: it is mounted at %s", drivebay.ErrBusy, g.others[0])
	case !can:
		return why, fmt.Errorf("%w: no program repairs a %s without making it worse at times", drivebay.ErrNoSupport, g.v.FSType)
	}
	return why, nil
}

// fsck repairs the filesystem, and then checks it and keeps the verdict.
func fsck(ctx context.Context, p *diagnosis) (err error) {
	p.stopScrub(ctx, p.v.ID)
	if p.signs.encrypted() {
		err = unlockAgain(ctx, p)
	} else {
		_, err = p.activate(ctx, &p.v)
	}
	if err != nil {
		return inOurWords(err)
	}
	defer func() { err = errors.Join(err, p.leaveAsFound(context.WithoutCancel(ctx), &p.v)) }()
	if p.d, err = p.plain(&p.v); err != nil {
		return err
	}
	if err := touch(ctx, p.Engine, &p.v, scrubTime, p.runFsck); err != nil {
		return err
	}
	verdict, err := p.scrub(ctx, &p.v)
	if err == nil {
		p.keepScrub(p.v.ID, verdict)
	}
	return err
}

func (p *diagnosis) runFsck(ctx context.Context) error {
	disk, err := p.openForWriting(ctx, writeTarget{device: p.d, drives: p.v.Location.Drives}) // not alone: the program opens it so
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := proveFS(disk, &p.v); err != nil {
		return err
	}
	with := repairers[p.v.FSType]
	_, err = p.machine.Run(ctx, append(with.argv[:len(with.argv):len(with.argv)], disk.Path())...)
	if exit, ended := errors.AsType[*host.ExitError](err); ended && slices.Contains(with.done, exit.Code) {
		return nil
	}
	return err
}

// leaveAsFound locks and deactivates a volume that is not in use, as it was before.
func (e *Engine) leaveAsFound(ctx context.Context, v *drivebay.Volume) error {
	s, err := e.mountState(ctx, *v)
	if err != nil || len(s.now) > 0 || len(s.t.of(s.d)) > 0 {
		return err
	}
	return errors.Join(s.lockUnused(ctx), e.deactivate(ctx, v))
}
