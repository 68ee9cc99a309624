package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestOtherID: the id of a snapshot is that of no volume, and the other way round: calls with it are NOT_FOUND, and not UNAVAILABLE for ever. A deletion is
// OK, removes nothing, and is not remembered as that of the snapshot.
func TestOtherID(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
		r := requests()["ext4 on thin"]
		v := s.make("v", r)
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		s.must(err)
		missing := func(what string, err error) {
			s.Helper()
			if !errors.Is(err, drivebay.ErrNotFound) || errors.Is(err, drivebay.ErrUnavailable) {
				s.Errorf("%s: %v", what, err)
			}
		}
		as := drivebay.Volume{ID: snap.ID, Mode: drivebay.ModeFS}
		missing("stage", s.stage(as))
		missing("get", s.e.Missing(snap.ID))
		_, _, err = s.e.ExpandVolume(s.Context(), snap.ID, drivebay.SizeRange{Required: 2 << 30})
		missing("expand", err)
		_, err = s.e.CreateSnapshot(s.Context(), "of a snapshot", snap.ID)
		missing("snapshot", err)
		for _, source := range []drivebay.Source{{Volume: snap.ID}, {Snapshot: v.ID}} {
			r.Name, r.Source = "copy", source
			_, err = s.e.CreateVolume(s.Context(), r)
			missing("copy", err)
		}
		s.must(s.e.DeleteVolume(s.Context(), snap.ID), s.e.DeleteSnapshot(s.Context(), v.ID))
		time.Sleep(time.Minute)
		s.must(s.stage(v), s.unstage(v))
		s.must(s.st.DeleteVolumeSnapshot(snap.ID)) // these two records are lost, what was deleted is known, and the drive has both still
		s.withoutRecord(v)
		r.Name, r.Source = "copy", drivebay.Source{Snapshot: snap.ID}
		_, err = s.e.CreateVolume(s.Context(), r)
		s.must(err, s.stage(v), s.unstage(v))
	})
}

// TestSnapshotOfEarlierVolume: a snapshot of a volume that was deleted is not the answer to a request for one of the next volume of that name: it has the data
// of the first.
func TestSnapshotOfEarlierVolume(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingThin)
		v := s.make("v", r)
		s.put(v, "of the first")
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		s.must(err, s.e.DeleteVolume(s.Context(), v.ID))
		s.make("v", r)
		for range 2 {
			if again, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID); !errors.Is(err, drivebay.ErrExists) {
				s.Errorf("a snapshot of the second volume: %+v, %v", again, err)
			}
			s.start()
		}
		r.Name, r.Source.Snapshot = "copy", snap.ID // which is what it was
		c, err := s.e.CreateVolume(s.Context(), r)
		s.must(err)
		if !s.has(c, "of the first") {
			s.Error("the copy of the first snapshot has other data")
		}
		s.must(s.e.DeleteSnapshot(s.Context(), snap.ID))
		for range 2 {
			_, err = s.e.CreateSnapshot(s.Context(), "snap", v.ID)
			s.must(err)
		}
	})
}

// TestCopyBelowItsSource: a limit below the size of the source is out of range, also where the request has no other size.
func TestCopyBelowItsSource(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingThin)
		v := s.make("v", r)
		r.Name, r.Source.Volume = "copy", v.ID
		for _, size := range []drivebay.SizeRange{{Limit: v.Size / 2}, {Required: v.Size / 4, Limit: v.Size / 2}} {
			r.Size = size
			if c, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrRange) || errors.Is(err, drivebay.ErrInvalid) {
				s.Errorf("%v: %+v, %v", size, c, err)
			}
		}
		r.Size = drivebay.SizeRange{Limit: v.Size}
		_, err := s.e.CreateVolume(s.Context(), r)
		s.must(err)
	})
}

// TestGrowthOfWhatIsRemoved: a volume whose removal has begun does not grow, nor is a growth to the size that it has acknowledged.
func TestGrowthOfWhatIsRemoved(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "ext4 on thin"} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()[name])
			d := v.Location.Drives[0]
			s.inject(d, "read-only")
			if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrUnavailable) {
				s.Fatal(err)
			}
			s.inject(d, "heal")
			for _, size := range []uint64{v.Size, v.Size + 64<<20} {
				if is, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: size}); !errors.Is(err, drivebay.ErrPending) {
					s.Errorf("%s: grown to %d: %+v, %v", name, size, is, err)
				}
			}
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		})
	}
}
