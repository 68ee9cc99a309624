package volume_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// namesakes are the requests of the tests of this file: every backing, with a filesystem.
func namesakes() map[string]drivebay.VolumeRequest {
	out := map[string]drivebay.VolumeRequest{}
	for name, r := range requests() {
		if !r.Block {
			r.Class.Wipe = drivebay.WipeZero
			out[name] = r
		}
	}
	drive := requests()["a drive"]
	drive.Block = false
	out["ext4 on a drive"], out["encrypted ext4"] = drive, encryptedRequests()["ext4 on a partition"]
	return out
}

// hasMark makes a folder in the filesystem of a volume, or says whether it is there.
func (s *stand) hasMark(v drivebay.Volume, make bool) bool {
	s.Helper()
	if v.LUKSUUID != "" {
		s.must(s.stage(v, with(rightKey)))
	} else {
		s.must(s.stage(v))
	}
	s.must(s.publish(v, "pod"))
	at := target(v, "pod") + "/mark"
	if make {
		s.must(s.sim.MakeFolder(place(at)))
	}
	is := s.look(at) != 0
	s.must(s.unpublish(v, "pod"), s.unstage(v))
	return is
}

// retried makes a call again while it answers that it is too early.
func (s *stand) retried(call func() error) error {
	s.Helper()
	var err error
	for range 10 {
		if err = call(); !errors.Is(err, drivebay.ErrUnavailable) && !errors.Is(err, drivebay.ErrBusy) && !errors.Is(err, drivebay.ErrPending) {
			return err
		}
		time.Sleep(20 * time.Second)
	}
	return err
}

// TestOlderStore: a store from before a volume was deleted and made again, in each state
// that its record can have been in. The volume that is on the drives stays whole, it
// is the one that its name stands for, and there is no second one.
func TestOlderStore(t *testing.T) {
	t.Parallel()
	older := map[string]func(*drivebay.VolumeRecord){
		"created": func(*drivebay.VolumeRecord) {},
		"removing": func(r *drivebay.VolumeRecord) {
			r.Volume.CSIStatus, r.Work = drivebay.CSIRemoving, &drivebay.Work{Op: drivebay.WorkRemove}
		},
		"wiped": func(r *drivebay.VolumeRecord) {
			r.Volume.CSIStatus, r.Work = drivebay.CSIRemoving, &drivebay.Work{Op: drivebay.WorkRemove, Made: []string{"wipe"}}
		},
		"creating": func(r *drivebay.VolumeRecord) {
			r.Volume.CSIStatus, r.Work = drivebay.CSICreating, &drivebay.Work{Op: drivebay.WorkCreate, Size: r.Volume.Size, PVs: map[string]string{}}
			for _, d := range r.Volume.Location.Drives {
				r.Work.PVs[d] = "AbCdEf-1234-5678-9012-3456-7890-AbCdE" + string(rune('0'+len(r.Work.PVs)))
			}
		},
		"growing": func(r *drivebay.VolumeRecord) {
			r.Volume.CSIStatus, r.Work = drivebay.CSIResizing, &drivebay.Work{Op: drivebay.WorkExpand, Size: 2 * r.Volume.Size}
		},
	}
	for name, r := range some(namesakes()) {
		for state, change := range older {
			t.Run(name+", "+state, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
					keep := s.make("keeps the group", r) // so that both have one group
					first := s.make("v", r)
					records, err := s.st.Volumes()
					s.must(err, s.e.DeleteVolume(s.Context(), first.ID))
					v := s.make("v", r)
					s.hasMark(v, true)
					old := records[v.ID]
					change(&old)
					s.stop()
					s.stop = nil
					s.must(s.st.PutVolume(old))
					s.start()
					time.Sleep(3 * time.Minute)
					is := s.of(v)
					if is.Location.Partition != v.Location.Partition || is.Location.Instance != v.Location.Instance || is.CSIStatus != drivebay.CSICreated || is.FSUUID != v.FSUUID && v.LUKSUUID == "" || is.LUKSUUID != v.LUKSUUID {
						s.Fatalf("it is %+v, %v: %s", is.Volume, is.CSIStatus, is.Condition.Message())
					}
					request := r
					request.Name, request.Size.Required = "v", 1<<30
					s.must(s.retried(func() error { _, err := s.e.CreateVolume(s.Context(), request); return err }))
					if is := s.of(v); is.Location.Partition != v.Location.Partition || is.Location.Instance != v.Location.Instance || !s.hasMark(v, false) {
						s.Errorf("asked for again it is %+v", is.Volume)
					}
					s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }), s.e.DeleteVolume(s.Context(), keep.ID))
					s.blank()
				})
			})
		}
	}
}

// TestOlderStoreWithoutGroup: a store from before a volume was deleted, with its volume group,
// and made again elsewhere or in another way; both were published at the same path.
func TestOlderStoreWithoutGroup(t *testing.T) {
	t.Parallel()
	mirror := requests()["a mirror"]
	mirror.Block = false
	kinds := map[string]drivebay.VolumeRequest{"partition": namesakes()["ext4 on a partition"], "linear": namesakes()["xfs on linear"], "thin": namesakes()["ext4 on thin"], "mirror": mirror}
	for was, first := range kinds {
		for i, next := range slices.Sorted(maps.Keys(kinds)) {
			r := kinds[next]
			if was == "partition" || i%min(everyNth, 2) != 0 {
				continue
			}
			for _, used := range []bool{false, true} {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					use := func(v drivebay.Volume) {
						if used {
							s.must(s.stage(v), s.publish(v, "pod"))
						}
					}
					gone := s.make("v", first)
					use(gone)
					records, err := s.st.Volumes()
					s.must(err, s.unpublish(gone, "pod"), s.unstage(gone), s.e.DeleteVolume(s.Context(), gone.ID))
					v := s.make("v", r)
					s.hasMark(v, true)
					use(v)
					s.stop()
					s.stop = nil
					s.must(s.st.PutVolume(records[v.ID]))
					s.start()
					time.Sleep(3 * time.Minute)
					is := s.of(v)
					if is.Location.Partition != v.Location.Partition || is.Location.Instance != v.Location.Instance || !used && is.CSIStatus != drivebay.CSICreated {
						t.Errorf("%s, then %s, used %v: it is %+v, %v: %s", was, next, used, is.Volume, is.CSIStatus, is.Condition.Message())
					}
					if s.must(s.unpublish(v, "pod"), s.unstage(v)); !s.hasMark(v, false) {
						t.Errorf("%s, then %s, used %v: what was written to it is not there", was, next, used)
					}
				})
			}
		}
	}
}

// TestOlderStoreDelete: the orchestrator deletes a volume while the record is an older
// one's: it hears OK when the volume that is there is wiped, not before.
func TestOlderStoreDelete(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear", "ext4 on thin"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			s.Log(name)
			r := namesakes()[name]
			first := s.make("v", r)
			records, err := s.st.Volumes()
			s.must(err, s.e.DeleteVolume(s.Context(), first.ID))
			v := s.make("v", r)
			s.stop()
			s.stop = nil
			s.must(s.st.PutVolume(records[v.ID]))
			s.begin()
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
			s.blank()
		})
	}
}

// TestNameReused: a volume is forgotten while its drive is away, and another one gets
// its name. When the first is back it is not what a request for the name gets, whether
// the second is there, or was deleted.
func TestNameReused(t *testing.T) {
	t.Parallel()
	for name, r := range some(namesakes()) {
		for _, when := range []string{"back before the second is deleted", "back after it", "back with a lost record of the second"} {
			t.Run(name+", "+when, func(t *testing.T) {
				onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 8, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}, volume.Options{Headers: t.TempDir()}, func(s *stand) {
					first := s.make("data-1", r)
					s.hasMark(first, true)
					var serials []string
					for _, id := range first.Location.Drives {
						d, _ := s.mgr.Snapshot().Find(id)
						serials = append(serials, d.Serial)
						s.inject(id, "vanish")
					}
					back := func() {
						for _, serial := range serials {
							s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
						}
						time.Sleep(2 * time.Minute)
					}
					time.Sleep(time.Minute)
					if when == "back with a lost record of the second" { // nothing says that it was forgotten
						s.must(s.st.DeleteVolume(first.ID))
						s.start()
					} else {
						s.must(s.e.ForgetVolume(s.Context(), first.ID))
					}
					second := s.make("data-1", r)
					if when != "back after it" {
						back()
						if is := s.of(second); is.FSUUID != second.FSUUID || s.hasMark(second, false) {
							s.Errorf("the second became the first: %+v", is.Volume)
						}
					}
					s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), second.ID) }))
					if when == "back after it" {
						back()
					}
					time.Sleep(2 * time.Minute)
					third := s.make("data-1", r)
					if third.FSUUID == first.FSUUID || s.hasMark(third, false) {
						s.Errorf("a new volume has the data of one that was forgotten: %+v", third)
					}
					s.start()
					time.Sleep(time.Minute)
					if is := s.of(third); is.FSUUID != third.FSUUID {
						s.Errorf("after a restart it is %+v", is.Volume)
					}
				})
			})
		}
	}
}

// TestTakenBack: an operator takes back a volume that was forgotten; a request for its
// name gets it from then on.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		r := namesakes()["ext4 on a partition"]
		v := s.make("v", r)
		s.hasMark(v, true)
		serial := s.drive(v).Serial
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		s.must(s.e.ForgetVolume(s.Context(), v.ID), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		time.Sleep(time.Minute)
		s.must(s.e.ClearVolume(s.Context(), v.ID))
		if again := s.make("v", r); again.FSUUID != v.FSUUID || !s.hasMark(v, false) {
			s.Errorf("taken back it is %+v", again)
		}
	})
}
