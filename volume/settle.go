package volume

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// settleAll holds all records against the mount table. A machine that was
// restarted has no mounts; one that only we were restarted on has them all, those
// included that we did not come to write down. What is missing there was not let go:
// it can be healed.
func (e *Engine) settleAll(ctx context.Context) {
	for _, r := range e.all() {
		err := e.onVolume(ctx, "settle", r.Volume.ID, func(ctx context.Context, v drivebay.Volume) error {
			t, err := e.recentTable(ctx)
			if err != nil {
				return err
			}
			s := e.sceneOn(v, t)
			s.takeIn()
			s.missIn()
			if err := s.keep(nil); err != nil || s.d.num == "" { // whether somebody has it is not known before it is found
				return err
			}
			return s.lockUnused(ctx)
		})
		if err != nil && !errors.Is(err, drivebay.ErrPending) {
			e.log.Warn("mounts not held against the record", "op", "settle", "volume", r.Volume.ID, "err", err)
		}
	}
}

// missIn keeps what was mounted since the machine was started, and is not any more.
func (s *scene) missIn() {
	boot := s.boot()
	for _, p := range s.v.Publications {
		if boot != "" && p.Boot == boot && !slices.ContainsFunc(s.now, func(have drivebay.Publication) bool { return have.Path == p.Path }) {
			s.now = append(s.now, p)
		}
	}
}

// boot is the kernel's name of its life (random(4), boot_id); "" if it does not say.
func (e *Engine) boot() string {
	text, err := e.machine.ReadFile("proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// takeIn takes mounts of the whole filesystem below our roots for ours: the first
// is where it is staged. Pieces of it that a kubelet has bound elsewhere
// (volume-subpaths) are not.
func (s *scene) takeIn() {
	if s.v.Mode != drivebay.ModeFS || s.d.num == "" {
		return
	}
	for _, m := range s.t.of(s.d) {
		at, ok := s.spotOf(m.Target)
		known := slices.ContainsFunc(s.now, func(p drivebay.Publication) bool { return p.Path == at.String() })
		if !ok || known || m.Root != "/" {
			continue
		}
		s.with(drivebay.Publication{Path: at.String(), Staging: s.staging() == nil, ReadOnly: isReadOnly(m), Device: s.d.num + " " + s.d.name, Since: s.machine.Now(), Boot: s.boot()})
	}
}
