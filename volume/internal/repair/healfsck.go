package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/watch"
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
	if !g.r.Fsck || !g.v.HasFilesystem() {
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
	p.e.Watch.StopScrub(ctx, p.V.ID)
	if p.signs.encrypted() {
		err = unlockAgain(ctx, p)
	} else {
		_, err = p.e.Device.Stack(&p.V).Open(ctx, device.Opening{})
	}
	if err != nil {
		return steps.InOurWords(err)
	}
	defer func() { err = errors.Join(err, p.e.Mounts.LeaveAsFound(context.WithoutCancel(ctx), &p.V)) }()
	if p.D, err = p.e.Device.Stack(&p.V).State(); err != nil {
		return err
	}
	if err := steps.Touch(ctx, p.e.Steps, &p.V, watch.ScrubTime, p.runFsck); err != nil {
		return err
	}
	verdict, err := p.e.Watch.Scrub(ctx, &p.V)
	if err == nil {
		p.e.Watch.KeepScrub(p.V.ID, verdict, true)
	}
	return err
}

func (p *diagnosis) runFsck(ctx context.Context) error {
	disk, err := p.e.Device.OpenForWriting(ctx, p.e.Device.Stack(&p.V).Target(&p.V, p.D)) // not alone: the program opens it so
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := mounts.ProveFS(disk, &p.V); err != nil {
		return err
	}
	with := repairers[p.V.FSType]
	_, err = p.Machine.Run(ctx, append(with.argv[:len(with.argv):len(with.argv)], disk.Path())...)
	if exit, ended := errors.AsType[*host.ExitError](err); ended && slices.Contains(with.done, exit.Code) {
		return nil
	}
	return err
}
