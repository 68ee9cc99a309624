package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Mounts that are in the record and not on the machine: they were unmounted by hand, or removed with their
// directory. They block nothing, once the kernel has proved that no container has the volume open any
// more.

// lost returns the publications that are not mounted any more.
func (s *mountState) lost() []drivebay.Publication {
	return slices.DeleteFunc(slices.Clone(s.v.Publications), func(p drivebay.Publication) bool { return slices.Contains(s.now, p) })
}

// dropLost removes the publications of a volume that is mounted nowhere from its record. A block volume
// that is staged is mounted nowhere either: what counts there is whether it has lost a target.
func (e *Engine) dropLost(ctx context.Context, v drivebay.Volume) error {
	s, err := e.mountState(ctx, v)
	if err != nil || len(s.lost()) == 0 || len(s.t.of(s.d)) > 0 {
		return err
	}
	if slices.ContainsFunc(s.now, func(p drivebay.Publication) bool { return !p.Staging || v.Mode == drivebay.ModeFS }) {
		return nil
	}
	if err := s.unused(ctx); err != nil {
		return err
	}
	s.now = nil
	s.counters.of(v.ID).forget()
	if err := s.keep(nil); err != nil {
		return err
	}
	return s.lockUnused(ctx)
}

// unused proves that nothing has the device of a volume open for itself alone, as a mounted filesystem
// does in any namespace. A volume without a device is unused.
func (s *mountState) unused(ctx context.Context) error {
	if s.d.num == "" {
		return nil
	}
	return touch(ctx, s.Engine, &s.v, mountTime, func(ctx context.Context) error {
		disk, err := s.machine.OpenDisk(ctx, s.d.dev, true)
		if errors.Is(err, host.ErrBusy) {
			return fmt.Errorf("in use by a container: stop the container first: %w", err)
		}
		if err == nil {
			disk.Close()
		}
		return err
	})
}

// mountLost does the safe repairs for a volume that has lost mounts.
func (e *Engine) mountLost(ctx context.Context, v drivebay.Volume) (lost bool, err error) {
	s, err := e.mountState(ctx, v)
	if err != nil || len(s.lost()) == 0 {
		return false, err
	}
	r := drivebay.HealRequest{Volume: v.ID, Safe: true}
	h := &healing{e: e, id: v.ID, r: r, report: &drivebay.HealReport{}, over: ctx.Err}
	if err := h.run(ctx); err != nil && !errors.Is(err, errUnhealed) {
		return true, err
	}
	for _, step := range h.report.Steps {
		if step.Failed != "" {
			return true, fmt.Errorf("%s: %s: %w: %s", step.Repair, step.Why, drivebay.ErrRefused, step.Failed)
		}
	}
	return true, nil
}
