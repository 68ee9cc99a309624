package mounts

import (
	"context"
	"errors"
	"slices"

	"github.com/drivebay/drivebay"
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
			s.takeIn()
			s.missIn()
			if err := s.Keep(nil); err != nil || s.D.Num == "" { // without its device it is not known whether the volume is in use
				return err
			}
			return s.closeUnused(ctx)
		})
		if err != nil && !errors.Is(err, drivebay.ErrPending) {
			e.Log.Warn("mounts not compared with the record", "op", "settle", "volume", r.Volume.ID, "err", err)
		}
	}
}

// missIn keeps publications that were mounted since the machine started and are not any more.
func (s *VolumeMounts) missIn() {
	boot := s.Mirror.Boot()
	for _, p := range s.V.Publications {
		if boot != "" && p.Boot == boot && !slices.ContainsFunc(s.Now, func(have drivebay.Publication) bool { return have.Path == p.Path }) {
			s.Now = append(s.Now, p)
		}
	}
}

// takeIn adopts mounts of the whole filesystem below the roots: the first is where it
// is staged. It does not adopt parts of the filesystem that a kubelet has bound elsewhere
// (volume-subpaths).
func (s *VolumeMounts) takeIn() {
	if !s.V.HasFilesystem() || s.D.Num == "" {
		return
	}
	for _, m := range s.T.Of(s.D) {
		at, ok := s.pathOfTarget(m.Target)
		known := slices.ContainsFunc(s.Now, func(p drivebay.Publication) bool { return p.Path == at.String() })
		if !ok || known || m.Root != "/" {
			continue
		}
		s.with(drivebay.Publication{Path: at.String(), Staging: s.Staging() == nil, ReadOnly: mounttable.IsReadOnly(m), Device: s.D.Num + " " + s.D.Name, Since: s.Machine.Now(), Boot: s.Mirror.Boot()})
	}
}
