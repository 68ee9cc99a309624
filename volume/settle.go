package volume

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// settleAll compares all records with the mount table. A machine that was restarted has
// no mounts. If only the daemon was restarted all mounts are there, also those that it
// had no time to record. Mounts that are missing then were not unmounted by the engine:
// they can be healed.
func (e *Engine) settleAll(ctx context.Context) {
	for _, r := range e.all() {
		err := e.onVolume(ctx, "settle", r.Volume.ID, func(ctx context.Context, v drivebay.Volume) error {
			t, err := e.recentTable(ctx)
			if err != nil {
				return err
			}
			s := e.mountStateIn(v, t)
			s.takeIn()
			s.missIn()
			if err := s.keep(nil); err != nil || s.d.num == "" { // without its device it is not known whether the volume is in use
				return err
			}
			return s.lockUnused(ctx)
		})
		if err != nil && !errors.Is(err, drivebay.ErrPending) {
			e.log.Warn("mounts not compared with the record", "op", "settle", "volume", r.Volume.ID, "err", err)
		}
	}
}

// missIn keeps publications that were mounted since the machine started and are not any more.
func (s *mountState) missIn() {
	boot := s.boot()
	for _, p := range s.v.Publications {
		if boot != "" && p.Boot == boot && !slices.ContainsFunc(s.now, func(have drivebay.Publication) bool { return have.Path == p.Path }) {
			s.now = append(s.now, p)
		}
	}
}

// boot returns the kernel's id of this boot (random(4), boot_id); "" if it cannot be read.
func (e *Engine) boot() string {
	text, err := e.machine.ReadFile("proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// takeIn adopts mounts of the whole filesystem below the roots: the first is where it
// is staged. It does not adopt parts of the filesystem that a kubelet has bound elsewhere
// (volume-subpaths).
func (s *mountState) takeIn() {
	if s.v.Mode != drivebay.ModeFS || s.d.num == "" {
		return
	}
	for _, m := range s.t.of(s.d) {
		at, ok := s.pathOfTarget(m.Target)
		known := slices.ContainsFunc(s.now, func(p drivebay.Publication) bool { return p.Path == at.String() })
		if !ok || known || m.Root != "/" {
			continue
		}
		s.with(drivebay.Publication{Path: at.String(), Staging: s.staging() == nil, ReadOnly: isReadOnly(m), Device: s.d.num + " " + s.d.name, Since: s.machine.Now(), Boot: s.boot()})
	}
}
