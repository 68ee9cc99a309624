package volume_test

import (
	"bytes"
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// put writes a mark into a block volume, through a pod; has reads it.
func (s *stand) put(v drivebay.Volume, mark string) {
	s.Helper()
	s.withDevice(v, func(dev string) {
		disk, err := s.sim.OpenDisk(s.Context(), dev, false)
		if err != nil {
			s.Fatal(err)
		}
		defer disk.Close()
		if _, err := disk.WriteAt([]byte(mark), 1<<20); err != nil {
			s.Fatal(err)
		}
	})
}

func (s *stand) has(v drivebay.Volume, mark string) bool {
	s.Helper()
	b := make([]byte, len(mark))
	s.withDevice(v, func(dev string) {
		disk, err := s.sim.OpenDisk(s.Context(), dev, false)
		if err != nil {
			s.Fatal(err)
		}
		defer disk.Close()
		if _, err := disk.ReadAt(b, 1<<20); err != nil {
			s.Fatal(err)
		}
	})
	return bytes.Equal(b, []byte(mark))
}

// withDevice has a block volume staged meanwhile.
func (s *stand) withDevice(v drivebay.Volume, f func(dev string)) {
	s.Helper()
	s.must(s.stage(v))
	f("/dev/" + v.Location.VG + "/" + v.Location.LV)
	s.must(s.unstage(v))
}

// TestSnapshotUnavailable: a snapshot says why it cannot be used while its drive is away or does not answer.
func TestSnapshotUnavailable(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"vanish", "offline", "hang"} {
		onMachine(t, drivesOf("10GB"), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()["a thin volume"])
			snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
			s.must(err)
			expect := func(when string, usable bool) {
				s.Helper()
				time.Sleep(2 * time.Minute)
				if is, known := s.e.Volumes().GetSnapshot(snap.ID); !known || (is.Unavailable == "") != usable {
					s.Errorf("%s, %s: %+v", fault, when, is)
				}
			}
			expect("here", true)
			s.inject(v.Location.Drives[0], fault)
			expect("away", false)
			back := map[string]string{"vanish": "return"}[fault]
			s.must(s.sim.Inject(hostsim.Fault{Drive: s.serialOf(v.Location.Drives[0]), Fault: cmp.Or(back, "heal")}))
			if fault == "hang" {
				time.Sleep(10 * time.Minute)
			}
			expect("back", true)
			if records, err := s.st.VolumeSnapshots(); err != nil || len(records) != 1 || records[snap.ID].Snapshot.Unavailable != "" {
				s.Errorf("%s: the record: %+v, %v", fault, records, err)
			}
		})
	}
}

// TestSnapshots: a snapshot keeps what was there, a copy of it is a volume of its
// own, and each outlives what it came from.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	onMachine(t, drivesOf("10GB"), volume.Options{}, func(s *stand) {
		r := requests()["a thin volume"]
		v := s.make("v", r)
		s.put(v, "first")
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		if err != nil || snap.Size != v.Size || snap.Source != v.ID || !snap.Block {
			s.Fatalf("%+v, %v", snap, err)
		}
		s.put(v, "later")
		again, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		if err != nil || again.ID != snap.ID {
			s.Errorf("asked for again: %+v, %v", again, err)
		}
		other := s.make("other", r)
		_, taken := s.e.CreateSnapshot(s.Context(), "snap", other.ID)
		_, none := s.e.CreateSnapshot(s.Context(), "another", "novolumeofthatid")
		linear := s.make("thick", requests()["a partition"])
		_, thick := s.e.CreateSnapshot(s.Context(), "thick", linear.ID)
		if !errors.Is(taken, drivebay.ErrExists) || !errors.Is(none, drivebay.ErrNotFound) || !errors.Is(thick, drivebay.ErrNoSupport) {
			s.Errorf("%v\n%v\n%v", taken, none, thick)
		}
		from := func(src drivebay.Source, size uint64) drivebay.VolumeRequest {
			r := r
			r.Source, r.Size.Required = src, size
			return r
		}
		restored := s.make("restored", from(drivebay.Source{Snapshot: snap.ID}, 0))
		larger := s.make("larger", from(drivebay.Source{Snapshot: snap.ID}, v.Size+8<<20))
		cloned := s.make("cloned", from(drivebay.Source{Volume: v.ID}, 0))
		if restored.Size != v.Size || larger.Size != v.Size+8<<20 || cloned.Size != v.Size {
			s.Errorf("sizes %d, %d, %d", restored.Size, larger.Size, cloned.Size)
		}
		if !s.has(restored, "first") || !s.has(larger, "first") || !s.has(cloned, "later") || !s.has(v, "later") {
			s.Error("a copy holds something else")
		}
		s.put(restored, "third")
		if !s.has(v, "later") || !s.has(larger, "first") {
			s.Error("writing to a copy has changed another")
		}
		for _, gone := range []drivebay.Volume{v, other} {
			s.must(s.e.DeleteVolume(s.Context(), gone.ID))
		}
		s.forget()
		if set := s.e.Volumes(); len(set.Volumes) != 4 || len(set.Snapshots) != 1 || set.Snapshots[0].Name != "snap" || set.Snapshots[0].Source != v.ID {
			s.Fatalf("found %d volumes and %+v", len(set.Volumes), set.Snapshots)
		}
		second := s.make("second", from(drivebay.Source{Snapshot: snap.ID}, 0))
		if !s.has(second, "first") {
			s.Error("the snapshot of a volume that is gone holds something else")
		}
		s.must(s.e.DeleteSnapshot(s.Context(), snap.ID), s.e.DeleteSnapshot(s.Context(), snap.ID))
		for _, v := range s.e.Volumes().Volumes {
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
		}
		s.blank()
	})
}

// TestCopiesBesideTheirOrigin: a copy has the identity of what it is a copy of, and
// is mounted beside it all the same, whichever comes first; after a loss of the
// records, too.
func TestCopiesBesideTheirOrigin(t *testing.T) {
	t.Parallel()
	for _, fs := range []string{"ext4", "xfs"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			r := drivebay.VolumeRequest{FSType: fs, Class: drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: fs}}
			v := s.make("v", r)
			s.must(s.stage(v))
			snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
			s.must(err)
			r.Source = drivebay.Source{Snapshot: snap.ID}
			restored := s.make("restored", r)
			r.Source = drivebay.Source{Volume: v.ID}
			cloned := s.make("cloned", r)
			if restored.FSUUID != v.FSUUID || cloned.FSUUID != v.FSUUID {
				s.Fatalf("%s: the copies are %s and %s, of %s", fs, restored.FSUUID, cloned.FSUUID, v.FSUUID)
			}
			all := []drivebay.Volume{v, restored, cloned}
			for _, first := range all {
				for _, v := range append([]drivebay.Volume{first}, all...) {
					s.must(s.stage(v), s.publish(v, "pod"))
				}
				if first.ID == cloned.ID {
					s.forget()
				}
				for _, v := range all {
					s.must(s.unpublish(v, "pod"), s.unstage(v))
				}
			}
			for _, first := range []drivebay.Volume{cloned, v, restored} {
				s.must(s.stage(first), s.publish(first, "pod"))
			}
			if opts := s.mounts(staging(v))[0].Opts; strings.Contains(opts, "nouuid") {
				s.Errorf("the origin is mounted with %s", opts)
			}
		})
	}
}

// TestPoolIsNotOvercommitted: all that was promised can be written.
func TestPoolIsNotOvercommitted(t *testing.T) {
	t.Parallel()
	onMachine(t, drivesOf("10GB"), volume.Options{}, func(s *stand) {
		r := requests()["a thin volume"]
		r.Size.Required = 5 << 30
		v := s.make("v", r)
		if _, err := s.e.CreateSnapshot(s.Context(), "too much", v.ID); !errors.Is(err, drivebay.ErrNoSpace) {
			s.Errorf("a snapshot of more than is left: %v", err)
		}
		c := r
		c.Name, c.Source = "copy", drivebay.Source{Volume: v.ID}
		if _, err := s.e.CreateVolume(s.Context(), c); !errors.Is(err, drivebay.ErrNoSpace) {
			s.Errorf("a copy of more than is left: %v", err)
		}
		if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 20 << 30}); !errors.Is(err, drivebay.ErrRange) {
			s.Errorf("grown beyond the pool: %v", err)
		}
		if is := s.of(v); is.CSIStatus != drivebay.CSICreated || is.Work != "" || len(s.e.Volumes().Snapshots) > 0 || len(s.e.Volumes().Volumes) != 1 {
			s.Errorf("what could not be had has left something: %+v", is.Volume)
		}
	})
}

// TestSnapshotKilled cuts the making and the removal of a snapshot and of a copy
// short after each step.
func TestSnapshotKilled(t *testing.T) {
	t.Parallel()
	k := &killer{}
	life := func() {
		onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
			r := requests()["a thin volume"]
			r.Name, r.Size.Required = "v", 1<<30
			again := func(do func() error) {
				s.Helper()
				if s.restarted(do()) {
					s.must(do())
				}
			}
			var v, c drivebay.Volume
			var snap drivebay.VolumeSnapshot
			again(func() (err error) { v, err = s.e.CreateVolume(s.Context(), r); return err })
			again(func() (err error) { snap, err = s.e.CreateSnapshot(s.Context(), "snap", v.ID); return err })
			r.Name, r.Source = "copy", drivebay.Source{Snapshot: snap.ID}
			again(func() (err error) { c, err = s.e.CreateVolume(s.Context(), r); return err })
			if set := s.e.Volumes(); len(set.Volumes) != 2 || len(set.Snapshots) != 1 {
				s.Errorf("%d volumes, %d snapshots", len(set.Volumes), len(set.Snapshots))
			}
			again(func() error { return s.e.DeleteVolume(s.Context(), v.ID) })
			again(func() error { return s.e.DeleteSnapshot(s.Context(), snap.ID) })
			again(func() error { return s.e.DeleteVolume(s.Context(), c.ID) })
			s.blank()
		})
	}
	life()
	steps := k.steps()
	for n := 1; n <= len(steps) && !t.Failed(); n += everyNth {
		k.anew(n)
		if life(); t.Failed() {
			t.Logf("killed after step %d, %q", n, steps[n-1])
		}
	}
}
