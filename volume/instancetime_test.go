package volume_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderStoreNamesAnOlderVolume: the store is one from before a volume was made anew while
// the drive of the first one was away, and that drive is back. Neither is used or removed until
// an operator decides, and either way his choice lasts.
func TestOlderStoreNamesAnOlderVolume(t *testing.T) {
	t.Parallel()
	for name, r := range some(namesakes()) {
		if strings.Contains(name, "mirror") {
			continue // half of it would have to be away
		}
		for _, way := range []string{"the record's", "the other one"} {
			t.Run(name+", "+way, func(t *testing.T) {
				onMachine(t, sameDrives(2), volume.Options{Headers: t.TempDir()}, func(s *stand) {
					first := s.make("v", r)
					s.hasMark(first, true)
					records, err := s.st.Volumes()
					s.must(err)
					old := first.Location.Drives[0]
					serial := s.serialOf(old)
					s.inject(old, "vanish")
					time.Sleep(time.Minute)
					s.must(s.e.ForgetVolume(s.Context(), first.ID))
					v := s.make("v", r)
					s.stop()
					s.stop = nil
					s.must(s.st.PutVolume(records[v.ID]), s.st.DeleteForgotten(drivebay.ForgottenVolume{ID: v.ID, Instance: instance(first.Location)}.Key()),
						s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
					time.Sleep(time.Minute)
					s.start()
					time.Sleep(11 * time.Minute)
					if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "volume clear") {
						t.Fatalf("staged: %v", err)
					}
					if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) {
						t.Errorf("removed: %v", err)
					}
					if is := s.of(v); !is.Condition.Abnormal() {
						t.Errorf("nothing is wrong with it: %v", is.Condition)
					}
					marked := way == "the record's" // that one was written to
					if marked {
						s.must(s.e.ClearVolume(s.Context(), v.ID))
					} else {
						s.inject(old, "vanish")
						time.Sleep(time.Minute)
						s.must(s.e.ForgetVolume(s.Context(), v.ID))
						time.Sleep(11 * time.Minute)
						s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
					}
					time.Sleep(11 * time.Minute)
					s.start()
					time.Sleep(time.Minute)
					if s.hasMark(v, false) != marked {
						t.Error("it is the other one")
					}
					if left := s.leftOn(); marked && !slices.Equal(left, v.Location.Drives) {
						t.Errorf("a volume that is not used is on %v; the event names %v", v.Location.Drives, left)
					}
				})
			})
		}
	}
}

// TestAdoptBesideItsRecord: the operator asks to adopt a volume from a drive that is not claimed,
// while the record of its id names a volume that is on its drive. The record stays, and the answer
// is a refusal.
func TestAdoptBesideItsRecord(t *testing.T) {
	t.Parallel()
	for _, recorded := range []string{"older", "newer"} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			s.claimAllByOperator()
			r := rawVolume(drivebay.BackingPartition)
			r.Size.Required = 64 << 20
			older := s.make("v", r)
			records, err := s.st.Volumes()
			s.must(err)
			away := s.serialOf(older.Location.Drives[0])
			s.must(s.sim.Inject(hostsim.Fault{Drive: away, Fault: "vanish"}))
			time.Sleep(time.Minute)
			s.must(s.e.ForgetVolume(s.Context(), older.ID))
			newer := s.make("v", r)
			s.stop()
			s.stop = nil
			s.must(s.st.DeleteForgotten(drivebay.ForgottenVolume{ID: older.ID, Instance: instance(older.Location)}.Key()))
			keeps, other := newer, older
			if recorded == "older" {
				keeps, other = older, newer
				s.must(s.st.PutVolume(records[older.ID]))
			}
			s.must(s.sim.Inject(hostsim.Fault{Drive: away, Fault: "return"}))
			s.must(s.mgr.Claim(s.Context(), other.Location.Drives[0], false))
			s.start()
			time.Sleep(time.Minute)
			if err := s.e.AdoptVolume(s.Context(), keeps.ID); !errors.Is(err, drivebay.ErrRefused) {
				t.Errorf("the record names the %s volume: adopted: %v", recorded, err)
			}
			if is := s.of(keeps).Location; is.Partition != keeps.Location.Partition {
				t.Errorf("the record names the %s volume, after the adoption %+v", recorded, is)
			}
		})
	}
}

func instance(l drivebay.Location) string {
	if l.VG == "" {
		return l.Partition
	}
	return l.Instance
}

// TestReleaseBesideItsRecord: two drives have a volume of one id, and an operator has to choose. The drive
// whose volume the record does not name is not released before that.
func TestReleaseBesideItsRecord(t *testing.T) {
	t.Parallel()
	for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
			r := rawVolume(backing)
			r.Size.Required = 64 << 20
			older := s.make("v", r)
			records, err := s.st.Volumes()
			s.must(err)
			away := s.serialOf(older.Location.Drives[0])
			s.must(s.sim.Inject(hostsim.Fault{Drive: away, Fault: "vanish"}))
			time.Sleep(time.Minute)
			s.must(s.e.ForgetVolume(s.Context(), older.ID))
			newer := s.make("v", r)
			s.stop()
			s.stop = nil
			s.must(s.st.DeleteForgotten(drivebay.ForgottenVolume{ID: older.ID, Instance: instance(older.Location)}.Key()))
			s.must(s.st.PutVolume(records[older.ID]))
			s.must(s.sim.Inject(hostsim.Fault{Drive: away, Fault: "return"}))
			s.start()
			time.Sleep(time.Minute)
			id := newer.Location.Drives[0]
			s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
			time.Sleep(20 * time.Minute)
			d, _ := s.mgr.Snapshot().Find(id)
			if d.Usage != drivebay.UsageReleasing || d.Leaving == nil || !strings.Contains(d.Leaving.Cause, instance(newer.Location)) {
				s.Fatalf("%s: it is %v, and waits for %+v", backing, d.Usage, d.Leaving)
			}
			s.must(s.e.ClearVolume(s.Context(), older.ID))
			s.usage(id, drivebay.UsageReleased, 10*time.Minute)
		})
	}
}

// TestInstancesInOrder: of two volumes the instance of the later one is the greater one, also when
// the clock was set back between them.
func TestInstancesInOrder(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		var last string
		for _, name := range []string{"c", "b", "a"} {
			v := s.make(name, namesakes()["ext4 on a partition"])
			if is := v.Location.Partition; is <= last || is[14] != '7' {
				t.Errorf("after %s comes %s", last, is)
			} else {
				last = is
			}
			s.stop()
			s.stop = nil
			s.machine = setBack{s.sim}
			s.start()
		}
	})
}

// setBack is a machine whose clock was set back by a year.
type setBack struct{ *hostsim.Machine }

func (m setBack) Now() time.Time { return m.Machine.Now().AddDate(-1, 0, 0) }

// TestOlderRemovalBesideNewerVolume: the store is one from the middle of a removal, and it has an earlier
// deletion of that id. Since then the records were lost, the clock was set back and a volume of the id
// was made, which by its time is older than that deletion. No byte of it is lost: the removal wipes
// nothing, and the errors name the way to the volume.
func TestOlderRemovalBesideNewerVolume(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, sameDrives(3), volume.Options{After: k.step}, func(s *stand) {
		s.must(s.e.DeleteVolume(s.Context(), s.make("v", requests()["a mirror"]).ID))
		removed := s.make("v", requests()["a mirror"])
		k.arm(1)
		killed := s.e.DeleteVolume(s.Context(), removed.ID)
		k.arm(0)
		records, err := s.st.Volumes()
		s.must(err)
		deleted, err := s.st.Forgotten()
		if s.must(err); !s.restarted(killed) || len(records) != 1 || len(deleted) != 1 {
			t.Fatalf("the removal was not killed: %v, %d records, %d deletions", killed, len(records), len(deleted))
		}
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), removed.ID) }))
		s.machine = setBack{s.sim}
		s.forget()
		v := s.make("v", namesakes()["ext4 on a partition"])
		s.hasMark(v, true)
		s.must(s.unpublish(v, "pod"), s.unstage(v))
		s.restart(func() {
			s.must(s.st.PutVolume(records[v.ID]))
			for _, d := range deleted {
				s.must(s.st.PutForgotten(d))
			}
		})
		time.Sleep(11 * time.Minute)
		if err := s.e.RetryVolume(s.Context(), v.ID); err == nil || !strings.Contains(err.Error(), "`drivebay volume forget "+v.ID+"`") {
			t.Errorf("the removal goes on: %v", err)
		}
		s.must(s.e.ForgetVolume(s.Context(), v.ID))
		time.Sleep(11 * time.Minute)
		if left := s.events(drivebay.EventVolumeLeft); len(left) == 0 || !strings.Contains(left[len(left)-1], "`drivebay volume adopt "+v.ID+"`") {
			t.Errorf("the way to the volume is not named: %+v", left)
		}
		s.must(s.e.AdoptVolume(s.Context(), v.ID))
		if !s.hasMark(s.of(v).Volume, false) {
			t.Error("it is another volume")
		}
	})
}

// TestCreateOfWhatIsGone: the store is one from before a volume was deleted. Asked for again,
// it is not said to be there; given up, it is made.
func TestCreateOfWhatIsGone(t *testing.T) {
	t.Parallel()
	for name, r := range some(namesakes()) {
		for _, found := range []bool{false, true} { // a record without the name that was asked for
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				v := s.make("v", r)
				records, err := s.st.Volumes()
				s.must(err, s.e.DeleteVolume(s.Context(), v.ID))
				s.stop()
				s.stop = nil
				rec := records[v.ID]
				if found {
					rec.Volume.Name, rec.Volume.Parameters = "", nil
				}
				s.must(s.st.PutVolume(rec))
				s.start()
				time.Sleep(time.Minute)
				request := r
				request.Name, request.Size.Required = "v", 1<<30
				_, err = s.e.CreateVolume(s.Context(), request)
				if !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "drivebay volume forget "+v.ID) {
					t.Fatalf("%s: %v", name, err)
				}
				s.must(s.e.ForgetVolume(s.Context(), v.ID))
				v, err = s.e.CreateVolume(s.Context(), request)
				s.must(err)
				if v.LUKSUUID == "" {
					s.must(s.stage(v), s.unstage(v))
				}
			})
		}
	}
}

// TestOlderStoreOfMovedGroup: a store from before a mirror was deleted and made anew in the same
// volume group, which has left one of its drives in between.
func TestOlderStoreOfMovedGroup(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
		r := requests()["a mirror"]
		keep := s.make("keeps the group", r)
		first := s.make("v", r)
		records, err := s.st.Volumes()
		s.must(err, s.e.DeleteVolume(s.Context(), first.ID))
		left := keep.Location.Drives[1]
		s.must(s.mgr.Operate(s.Context(), left, drivebay.LeaveRelease, ""))
		s.usage(left, drivebay.UsageReleased, 10*time.Minute)
		v := s.make("v", r)
		if v.Location.VG != first.Location.VG {
			t.Fatalf("it is in another group: %+v", v.Location)
		}
		s.stop()
		s.stop = nil
		s.must(s.st.PutVolume(records[v.ID]))
		s.start()
		time.Sleep(3 * time.Minute)
		if is := s.of(v); is.Location.Instance != v.Location.Instance || is.CSIStatus != drivebay.CSICreated {
			t.Errorf("it is %+v, %v: %s", is.Location, is.CSIStatus, is.Condition.Message())
		}
		s.must(s.stage(v), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	})
}

// TestDeletedWhileUnknown: the records are lost while the drive of a volume is away, and the
// volume is deleted. When the drive is back it is not taken in, and its name stands for a new one.
func TestDeletedWhileUnknown(t *testing.T) {
	t.Parallel()
	for name, r := range some(namesakes()) {
		for _, between := range []bool{false, true} { // another one of its name was made and deleted meanwhile
			onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 8, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}, volume.Options{Headers: t.TempDir()}, func(s *stand) {
				first := s.make("v", r)
				s.hasMark(first, true)
				var serials []string
				for _, id := range first.Location.Drives {
					serials = append(serials, s.serialOf(id))
					s.inject(id, "vanish")
				}
				time.Sleep(time.Minute)
				s.forget()
				if between {
					s.make("v", r)
				}
				s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), first.ID) }))
				for _, serial := range serials {
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
				}
				time.Sleep(11 * time.Minute)
				if view, _ := s.e.Volumes().Get(first.ID); view != nil {
					t.Errorf("%s: it is back: %+v", name, view.Volume)
				}
				left := s.leftOn()
				if len(left) == 0 {
					t.Errorf("%s: nothing is said of what is left of it", name)
				}
				for _, id := range left {
					if !slices.Contains(first.Location.Drives, id) {
						t.Errorf("%s: it was on %v; the event names %q", name, first.Location.Drives, id)
					}
				}
				if name == "ext4 on a partition" && !between {
					s.must(s.e.AdoptVolume(s.Context(), first.ID)) // an operator wants it after all
					if !s.hasMark(s.of(first).Volume, false) {
						t.Error("it is not what it was")
					}
					return
				}
				if second := s.make("v", r); second.FSUUID == first.FSUUID && r.Block == false || s.hasMark(second, false) {
					t.Errorf("%s: a new volume has the data of one that was deleted: %+v", name, second)
				}
			})
		}
	}
}

// TestAdoptForgotten: a volume that was forgotten and is back on a drive that is not claimed is
// adopted, and the answer is OK.
func TestAdoptForgotten(t *testing.T) {
	t.Parallel()
	onMachine(t, twoNVMe, volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		serial := s.serialOf(v.Location.Drives[0])
		s.claimAll(false)
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
		time.Sleep(time.Minute)
		s.must(s.e.ForgetVolume(s.Context(), v.ID), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		time.Sleep(11 * time.Minute)
		err := s.e.AdoptVolume(s.Context(), v.ID)
		if _, is := s.e.Volumes().Get(v.ID); err != nil || !is {
			t.Errorf("adopted %v: %v", is, err)
		}
	})
}

// TestAdoptDeletedBesideNewer: a volume that was deleted while its drive was offline returns, and a new
// one has its name. It is not adopted, and the answer says so.
func TestAdoptDeletedBesideNewer(t *testing.T) {
	t.Parallel()
	onMachine(t, twoNVMe, volume.Options{}, func(s *stand) {
		r := requests()["ext4 on a partition"]
		v := s.make("v", r)
		serial := s.serialOf(v.Location.Drives[0])
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
		time.Sleep(time.Minute)
		s.forget()
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		time.Sleep(11 * time.Minute)
		s.make("v", r)
		if err := s.e.AdoptVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) {
			t.Errorf("adopted: %v", err)
		}
	})
}

// TestDeletedWithADeadNode: a volume is deleted while its drive is offline, and the path of a pod still
// shows the node of the device that went. The volume does not return with the drive.
func TestDeletedWithADeadNode(t *testing.T) {
	t.Parallel()
	onMachine(t, twoNVMe, volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a partition"])
		serial := s.serialOf(v.Location.Drives[0])
		s.must(s.stage(v), s.publish(v, "pod"), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
		time.Sleep(time.Minute)
		s.forget()
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		time.Sleep(11 * time.Minute)
		if view, is := s.e.Volumes().Get(v.ID); is {
			t.Errorf("it is back: %+v", view.Volume)
		}
	})
}

// TestUsedVolumeWasNotDeleted: the records are lost and the clock is set back, a deleted volume is
// made again and staged, and the older records with its deletion are restored. What is in use was
// not deleted.
func TestUsedVolumeWasNotDeleted(t *testing.T) {
	t.Parallel()
	for name, r := range some(namesakes()) {
		onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
			s.must(s.e.DeleteVolume(s.Context(), s.make("v", r).ID))
			deletions, err := s.st.Forgotten()
			s.must(err)
			for key := range deletions {
				s.must(s.st.DeleteForgotten(key))
			}
			s.stop()
			s.stop = nil
			s.machine = setBack{s.sim}
			s.start()
			v := s.make("v", r)
			if v.LUKSUUID != "" {
				s.must(s.stage(v, with(rightKey)))
			} else {
				s.must(s.stage(v))
			}
			s.stop()
			s.stop = nil
			s.must(s.st.DeleteVolume(v.ID))
			for _, f := range deletions {
				s.must(s.st.PutForgotten(f))
			}
			s.start()
			time.Sleep(time.Minute)
			if view, _ := s.e.Volumes().Get(v.ID); view == nil || instance(view.Location) != instance(v.Location) {
				t.Errorf("%s: it is not taken in: %+v", name, view)
			}
		})
	}
}

// TestForgetBesideItsNewerVolume: an older store names a volume that is not in its volume group any
// more, and the drive has a volume with its id that was deleted. An operator can forget the record.
func TestForgetBesideItsNewerVolume(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a linear volume"])
		records, err := s.st.Volumes()
		s.must(err, s.e.DeleteVolume(s.Context(), v.ID))
		newer := s.make("v", requests()["a partition"])
		s.stop()
		s.stop = nil
		s.must(s.st.PutVolume(records[v.ID]), s.st.PutForgotten(drivebay.ForgottenVolume{ID: v.ID, Instance: newer.Location.Partition, Replaced: true}))
		s.start()
		time.Sleep(time.Minute)
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
			t.Fatal("deleted")
		}
		s.must(s.e.ForgetVolume(s.Context(), v.ID))
	})
}

// TestOlderStoreOfReleasedDrive: a store from before the release of a drive was canceled and a
// volume was made there. The volume is taken in, and its deletion wipes it.
func TestOlderStoreOfReleasedDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
		d := s.mgr.Snapshot().Drives[0].ID
		s.must(s.mgr.Operate(s.Context(), d, drivebay.LeaveRelease, ""))
		s.usage(d, drivebay.UsageReleased, time.Minute)
		time.Sleep(time.Minute) // until the store has it
		drives, err := s.st.Records()
		s.must(err, s.mgr.Operate(s.Context(), d, drivebay.LeaveCancel, ""))
		time.Sleep(time.Minute)
		r := rawVolume(drivebay.BackingPartition)
		r.Size.Required, r.Class.Wipe = 64<<20, drivebay.WipeZero
		v := s.make("v", r)
		s.must(s.stage(v))
		s.write(v, []byte("SECRET"), 32<<20)
		s.must(s.unstage(v))
		s.stop()
		s.stop = nil
		older := store.Memory()
		s.must(older.PutRecords(drives))
		s.newDaemon(older)
		time.Sleep(time.Minute)
		if d, _ := s.mgr.Snapshot().Find(d); d.Usage != drivebay.UsageReleased {
			t.Fatalf("the drive is %v", d.Usage)
		}
		if view, _ := s.e.Volumes().Get(v.ID); view == nil {
			t.Error("the volume is not taken in")
		}
		s.must(s.mgr.Operate(s.Context(), d, drivebay.LeaveCancel, ""))
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		if s.anywhere(d, "SECRET") {
			t.Error("the deletion is acknowledged, and its data is there")
		}
	})
}

// TestOlderStoreFoundUnclaimed: a store from before a volume was deleted and made again on a drive
// that the store does not claim. The new volume is shown with its drive, and adopted when an
// operator asks for it.
func TestOlderStoreFoundUnclaimed(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		u := s.claimAllByOperator()
		r := rawVolume(drivebay.BackingPartition)
		r.Size.Required = 64 << 20
		first := s.make("v", r)
		records, err := s.st.Volumes()
		s.must(err, s.e.DeleteVolume(s.Context(), first.ID))
		s.must(s.mgr.Cordon(s.Context(), first.Location.Drives[0], true))
		time.Sleep(time.Minute)
		v := s.make("v", r) // on the other drive
		s.must(s.mgr.Cordon(s.Context(), first.Location.Drives[0], false))
		s.stop()
		s.stop = nil
		u.withdraw(s, v.Location.Drives[0], func() {
			s.must(s.st.PutVolume(records[v.ID]))
			s.start()
			time.Sleep(time.Minute)
			found := s.e.Volumes().Found
			if len(found) != 1 || found[0].ID != v.ID || found[0].Drives[0] != v.Location.Drives[0] {
				t.Fatalf("found are %+v", found)
			}
			s.must(s.e.AdoptVolume(s.Context(), v.ID))
			if is := s.of(v).Location; is.Partition != v.Location.Partition {
				t.Errorf("adopted is %+v", is)
			}
		})
	})
}

// TestExpandAndSnapshotOfWhatIsGone: the store is one from before a volume and its snapshot were
// deleted. A call that asks for what the records already have is not acknowledged.
func TestExpandAndSnapshotOfWhatIsGone(t *testing.T) {
	t.Parallel()
	for name, r := range some(namesakes()) {
		onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
			v := s.make("v", r)
			thin := v.Location.Kind == drivebay.LocationThin
			var snap drivebay.VolumeSnapshot
			var err error
			if thin {
				for range 2 { // the second call is acknowledged: it is there
					snap, err = s.e.CreateSnapshot(s.Context(), "s", v.ID)
					s.must(err)
				}
			}
			_, _, err = s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size})
			s.must(err)
			volumes, err := s.st.Volumes()
			s.must(err)
			snaps, err := s.st.VolumeSnapshots()
			s.must(err)
			if thin {
				s.must(s.e.DeleteSnapshot(s.Context(), snap.ID))
			}
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.stop()
			s.stop = nil
			s.must(s.st.PutVolume(volumes[v.ID]))
			if thin {
				s.must(s.st.PutVolumeSnapshot(snaps[snap.ID]))
			}
			s.start()
			time.Sleep(time.Minute)
			if _, _, err = s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size}); !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("%s: expanded: %v", name, err)
			}
			if thin {
				if _, err := s.e.CreateSnapshot(s.Context(), "s", v.ID); !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "snapshot-forget") {
					t.Errorf("%s: the snapshot is there: %v", name, err)
				}
			}
		})
	}
}

// TestOlderRecordOfABarePV: a record of an older store names a logical volume on a drive that has only an
// empty partition for a physical volume by now. What a drive has of its id, and is newer, takes its place.
func TestOlderRecordOfABarePV(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingLVM)
		r.Size.Required = 64 << 20
		older := s.make("v", r)
		records, err := s.st.Volumes()
		s.must(err)
		old := s.driveOf(older)
		s.must(s.e.DeleteVolume(s.Context(), older.ID), s.mgr.Cordon(s.Context(), old.ID, true))
		time.Sleep(10 * time.Second)
		newer := s.make("v", r)
		s.must(s.mgr.Cordon(s.Context(), newer.Location.Drives[0], true), s.mgr.Cordon(s.Context(), old.ID, false))
		time.Sleep(10 * time.Second)
		bare := s.make("bare", r)
		s.must(s.mgr.Cordon(s.Context(), newer.Location.Drives[0], false))
		if newer.Location.Drives[0] == old.ID || bare.Location.Drives[0] != old.ID {
			s.Fatalf("they are on other drives: %+v, %+v", newer.Location, bare.Location)
		}
		s.stop()
		s.stop = nil
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+old.Name+"p1", true)
		s.must(err)
		s.must(disk.Zero(s.Context(), 0, disk.Size()), disk.Close())
		s.must(s.st.DeleteVolume(bare.ID), s.st.PutVolume(records[older.ID]))
		all, err := s.st.Forgotten()
		s.must(err)
		for key, f := range all {
			if f.ID == older.ID {
				s.must(s.st.DeleteForgotten(key))
			}
		}
		s.start()
		time.Sleep(11 * time.Minute)
		if is := s.of(newer); is.Location.VG != newer.Location.VG || is.Condition.Abnormal() {
			s.Errorf("it is %+v, %v", is.Location, is.Condition)
		}
	})
}
