package volume

import (
	"context"

	"github.com/drivebay/drivebay"
)

// Run keeps the set of volumes true until ctx ends, and takes up what was
// interrupted.
func (e *Engine) Run(ctx context.Context) error {
	defer e.running.Wait()
	defer e.stop()
	s, err := e.drives.Wait(ctx, 0)
	if err != nil {
		return nil
	}
	if err := e.look(ctx, s); err != nil {
		e.log.Warn("volumes not listed", "op", "look", "err", err)
	}
	e.resume(ctx)
	tick := e.machine.After(e.opt.Tick)
	for seq := s.Seq; ; {
		e.publish()
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		case <-tick:
			tick = e.machine.After(e.opt.Tick)
			if s := e.drives.Snapshot(); s.Seq != seq {
				seq = s.Seq
				if err := e.look(ctx, s); err != nil {
					e.log.Warn("volumes not listed", "op", "look", "err", err)
				}
			}
		}
	}
}

// publish makes what is known the set that all read.
func (e *Engine) publish() {
	last := e.set.Load()
	next := &drivebay.VolumeSet{Seq: last.Seq + 1, At: e.machine.Now(), Drives: e.drives.Snapshot()}
	for _, r := range e.all() {
		next.Volumes = append(next.Volumes, e.view(r, next.Drives))
	}
	e.set.Store(next)
}

func (e *Engine) view(r *drivebay.VolumeRecord, s *drivebay.Snapshot) *drivebay.VolumeView {
	f := e.facts(&r.Volume, s)
	v := f.Volume
	v.Health = drivebay.VolumeHealthOf(f)
	f.Volume.Health = v.Health
	v.OperationalStatus = drivebay.OperationalStatusOf(f)
	f.Volume.OperationalStatus = v.OperationalStatus
	out := &drivebay.VolumeView{Volume: v, Condition: drivebay.ConditionOf(f), Facts: &f}
	if r.Work != nil {
		out.Work = string(r.Work.Op)
	}
	return out
}
