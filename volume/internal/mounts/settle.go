package mounts

import (
	"context"
	"errors"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// SettleAll compares all records with the mount table. A machine that was restarted has
// no mounts. If only the daemon was restarted all mounts are there, also those that it
// had no time to record. Mounts that are missing then were not unmounted by the engine:
// they can be healed.
func (e *Mounter) SettleAll(ctx context.Context) {
	for _, r := range e.Ledger.All() {
		err := e.Ledger.OnVolume(ctx, "settle", r.Volume.ID, func(ctx context.Context, v drivebay.Volume) error {
			t, err := e.MountTable.RecentTable(ctx)
			if err != nil {
				return err
			}
			s := e.MountStateIn(v, t)
			boot := s.Mirror.Boot() // what was mounted before the machine was restarted is not missing
			s.Lost = slices.DeleteFunc(s.Lost, func(p drivebay.Publication) bool { return boot == "" || p.Boot != boot })
			s.Now = slices.DeleteFunc(s.Now, func(p drivebay.Publication) bool {
				return s.stagedAsBlock(p) && boot != "" && p.Boot != "" && p.Boot != boot
			})
			s.since(boot)
			s.takeIn()
			if err := s.Keep(); err != nil || s.D.Num == "" { // without its device it is not known whether the volume is in use
				return err
			}
			return s.closeUnused(ctx)
		})
		if err != nil && !errors.Is(err, drivebay.ErrPending) {
			e.Log.Warn("mounts not compared with the record", "op", "settle", "volume", r.Volume.ID, "err", err)
		}
	}
}

// since corrects publications of an earlier boot whose paths show the volume: their record is older than the mounts.
func (s *VolumeMounts) since(boot string) {
	for i := range s.Now {
		p := &s.Now[i]
		at, err := s.CheckPath(p.Path)
		if err != nil || boot == "" || p.Boot == boot {
			continue
		}
		if state, _ := s.StateOf(*p, at.Target); state == PathLive {
			p.Device, p.Since, p.Boot = s.D.Num+" "+s.D.Name, s.Machine.Now(), boot
		}
	}
}

// takeIn adopts mounts of the whole filesystem below the roots. It is staged where a path has the form for
// that, else at the first. The order says little: a staging path that was mounted again comes after the
// paths of pods. takeIn does not adopt parts of the filesystem that a kubelet has bound elsewhere
// (volume-subpaths).
func (s *VolumeMounts) takeIn() {
	if !s.V.HasFilesystem() || s.D.Num == "" {
		return
	}
	all := s.T.Of(s.D)
	named := slices.ContainsFunc(all, func(m host.Mount) bool { return mounttable.IsStaging(m.Target) })
	for _, m := range all {
		at, ok := s.pathOfTarget(m.Target)
		known := slices.ContainsFunc(s.Now, func(p drivebay.Publication) bool { return p.Path == at.String() })
		if !ok || known || m.Root != "/" {
			continue
		}
		s.with(drivebay.Publication{Path: at.String(), Staging: s.Staging() == nil && mounttable.IsStaging(at.Target) == named, ReadOnly: mounttable.IsReadOnly(m), Device: s.D.Num + " " + s.D.Name, Since: s.Machine.Now(), Boot: s.Mirror.Boot()})
	}
}

// guessed reports whether what a path is for is not known: it was adopted without a record, and its form does
// not say it. Then the verb of the call for the path says it.
func guessed(p *drivebay.Publication) bool { return p.Flags == "" && !mounttable.IsStaging(p.Path) }
