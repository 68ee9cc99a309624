package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderStoreFillsNoPool: a store is restored from a moment when a thin volume, a copy or a snapshot was being made. It was deleted,
// and others have been promised all of the pool since. What continues promises no more than the pool has: others would run
// out of space while they are written.
func TestOlderStoreFillsNoPool(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"volume", "copy", "snapshot"} {
		var s *stand
		var halfSnapshot *drivebay.SnapshotRecord
		k := &recordAfter{step: "volume"}
		after := k.after(&s, func() {})
		opt := volume.Options{After: func(id, step string) error {
			if all, _ := s.st.VolumeSnapshots(); step == "snapshot" && halfSnapshot == nil {
				r := all[id]
				halfSnapshot = &r
			}
			return after(id, step)
		}}
		onMachine(t, nvmeDrives(1), opt, func(st *stand) {
			s = st
			r := rawVolume(drivebay.BackingThin)
			r.Size.Required = 4 << 30
			source := s.make("source", r)
			make, remove := func() string { return s.make("v", r).ID }, s.e.DeleteVolume
			switch what {
			case "copy":
				r.Source.Volume = source.ID
			case "snapshot":
				make = func() string {
					snap, err := s.e.CreateSnapshot(s.Context(), "snap", source.ID)
					s.must(err)
					return snap.ID
				}
				remove = s.e.DeleteSnapshot
			}
			k.armed.Store(what != "snapshot")
			id := make()
			s.must(remove(s.Context(), id))
			all := rawVolume(drivebay.BackingThin)
			all.Size.Required = s.free(all)
			s.make("w", all)
			if what == "snapshot" {
				if halfSnapshot == nil || halfSnapshot.Work == nil {
					t.Fatalf("%+v", halfSnapshot)
				}
				s.stop()
				s.stop = nil
				s.must(s.st.PutVolumeSnapshot(*halfSnapshot))
				s.start()
				time.Sleep(3 * time.Minute)
			} else {
				s.startWith(*k.is.Load())
			}
			set := s.e.Volumes()
			if is, there := set.Get(id); there && is.CSIStatus == drivebay.CSICreated {
				t.Errorf("a %s was made in a full pool", what)
			}
			if _, there := set.GetSnapshot(id); there {
				t.Errorf("a %s was made in a full pool", what)
			}
		})
	}
}
