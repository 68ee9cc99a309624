package volume_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestDriveLeaves: volumes go with their drive, nothing new comes to it, and it is
// free to go when the last of them is gone; one that stays after all has them back.
func TestDriveLeaves(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on thin"])
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		id := v.Location.Drives[0]
		expect := func(drive drivebay.Usage, of drivebay.VolumeUsage, waits string) {
			s.Helper()
			time.Sleep(time.Minute)
			is, vol := s.drive(v), s.of(v)
			if is.Usage != drive || vol.Usage != of || waits != "" && (is.Leaving == nil || !strings.Contains(is.Leaving.Cause, waits)) {
				s.Fatalf("the drive is %v, %+v, the volume %v", is.Usage, is.Leaving, vol.Usage)
			}
		}
		s.noSpare(v)
		s.must(err, s.stage(v), s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		expect(drivebay.UsageReleasing, drivebay.VolumeReleasing, "no spare: ")
		if is := s.of(v); is.OperationalStatus != drivebay.Maintenance {
			s.Errorf("meanwhile it is %v", is.OperationalStatus)
		}
		r := requests()["ext4 on a partition"]
		r.Name = "other"
		if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrNoSpace) {
			s.Errorf("a new volume on a drive that has to leave: %v", err)
		}
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveCancel, ""))
		expect(drivebay.UsageInUse, drivebay.VolumeInUse, "")
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		expect(drivebay.UsageReleasing, drivebay.VolumeReleasing, "snapshot snap")
		s.start() // and it is still leaving
		expect(drivebay.UsageReleasing, drivebay.VolumeReleasing, "volume v")
		s.must(s.unstage(v), s.e.DeleteSnapshot(s.Context(), snap.ID), s.e.DeleteVolume(s.Context(), v.ID))
		time.Sleep(time.Minute)
		if is := s.drive(v); is.Usage != drivebay.UsageReleased {
			s.Fatalf("empty, it is %v, %+v", is.Usage, is.Leaving)
		}
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveApprove, ""))
		time.Sleep(time.Minute)
		if is := s.drive(v); is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline {
			s.Errorf("taken out, it is %v, %v", is.Usage, is.Status)
		}
	})
}

// TestMoveBeforeUse: a volume whose pod starts again at once leaves its drive nevertheless, if an operator
// wants it to move first.
func TestMoveBeforeUse(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ext4 on a partition", "a partition", "a drive"} {
		t.Run(kind, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[kind])
				old := v.Location.Drives[0]
				if err := s.e.MoveBeforeUse(s.Context(), v.ID, true); !errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("its drive stays: %v", err)
				}
				s.must(s.stage(v), s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
				time.Sleep(time.Minute)
				s.must(s.unstage(v), s.stage(v)) // a pod that starts again at once
				time.Sleep(10 * time.Minute)
				if is := s.of(v).Location.Drives[0]; is != old {
					s.Fatalf("it moved to %s while it was in use", is)
				}

				s.must(s.e.MoveBeforeUse(s.Context(), v.ID, true), s.stage(v), s.unstage(v)) // staged it stays so
				if err := s.stage(v); !errors.Is(err, drivebay.ErrUnavailable) {
					s.Errorf("before the move: %v", err)
				}
				s.until("moved", func() bool { _ = s.stage(v); return s.of(v).Location.Drives[0] != old })
				if is := s.of(v); is.MoveBeforeUse {
					s.Error("it is to move once more")
				}
				s.must(s.stage(v))

				// The request ends if the drive stays.
				now := s.of(v).Location.Drives[0]
				s.must(s.mgr.Operate(s.Context(), now, drivebay.LeaveRelease, ""))
				time.Sleep(time.Minute)
				s.must(s.e.MoveBeforeUse(s.Context(), v.ID, true), s.mgr.Operate(s.Context(), now, drivebay.LeaveCancel, ""))
				time.Sleep(time.Minute)
				s.must(s.unstage(v), s.stage(v), s.unstage(v))
			})
		})
	}
}

// TestVolumeIsLetGo: a drive goes without what nobody needs any more, but not while that
// is mounted; if it stays after all, so does the volume.
func TestVolumeIsLetGo(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ext4 on a partition", "ext4 on thin"} {
		t.Run(kind, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[kind])
				id := v.Location.Drives[0]
				s.noSpare(v)
				if v.Location.Kind == drivebay.LocationThin {
					_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
					s.must(err)
				}
				if err := s.e.ReleaseVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("its drive stays: %v", err)
				}
				s.must(s.stage(v), s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
				time.Sleep(time.Minute)
				if err := s.e.ReleaseVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
					s.Errorf("it is mounted: %v", err)
				}
				s.must(s.unstage(v), s.e.ReleaseVolume(s.Context(), v.ID), s.e.ReleaseVolume(s.Context(), v.ID))
				if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) {
					s.Errorf("staged again: %v", err)
				}
				time.Sleep(time.Minute)
				if is := s.drive(v); is.Usage != drivebay.UsageReleased || s.of(v).Usage != drivebay.VolumeReleased {
					s.Fatalf("the drive is %v, %+v, the volume %v", is.Usage, is.Leaving, s.of(v).Usage)
				}
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveCancel, ""))
				time.Sleep(time.Minute)
				if is := s.of(v); is.Usage != drivebay.VolumeInUse {
					s.Fatalf("cancelled, the volume is %v", is.Usage)
				}
				s.must(s.stage(v), s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, "")) // mounted, or it would be copied away
				time.Sleep(time.Minute)
				s.must(s.unstage(v), s.e.ReleaseVolume(s.Context(), v.ID))
				time.Sleep(time.Minute)
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveApprove, ""))
				time.Sleep(time.Minute)
				if is := s.drive(v); is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline {
					s.Errorf("taken out, it is %v, %v", is.Usage, is.Status)
				}
			})
		})
	}
}

// TestWrongSledPulled: the volumes on a drive that is pulled by mistake are MISSING until
// it is back, and the drive that was meant is still the one to be pulled.
func TestWrongSledPulled(t *testing.T) {
	t.Parallel()
	bays := hostsim.Spec{Enclosures: []hostsim.Enclosure{{Name: "flash", Kind: hostsim.EnclosurePCI, Bays: 4}}, Drives: []hostsim.Group{{Bays: "0-2", Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
	onMachine(t, bays, volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		wrong := s.drive(v)
		var meant drivebay.Drive
		for _, d := range s.mgr.Snapshot().Drives {
			if d.ID != wrong.ID && d.Slot.Bay != "" && d.Status == drivebay.StatusOnline {
				meant = d
			}
		}
		s.must(s.stage(v), s.mgr.Operate(s.Context(), meant.ID, drivebay.LeaveRelease, ""))
		time.Sleep(time.Minute)
		s.must(s.mgr.Operate(s.Context(), meant.ID, drivebay.LeaveApprove, ""))
		for _, step := range []struct {
			fault string
			want  func(drivebay.OperationalStatus) bool
		}{
			{"vanish", func(o drivebay.OperationalStatus) bool { return o == drivebay.Missing }},
			{"return", func(o drivebay.OperationalStatus) bool { return o != drivebay.Missing }},
		} {
			s.inject(wrong.ID, step.fault)
			time.Sleep(time.Minute)
			if is := s.of(v).OperationalStatus; !step.want(is) {
				s.Errorf("%s: the volume is %v", step.fault, is)
			}
		}
		told := 0
		for _, e := range s.mgr.Events(0, 0) {
			if e.Kind == drivebay.EventWrongPulled && e.Drive == wrong.ID && e.From == meant.ID {
				told++
			}
		}
		if is, _ := s.mgr.Snapshot().Find(meant.ID); told != 1 || is.Usage != drivebay.UsageRemoved {
			s.Errorf("%d events tell of it, the drive that was meant is %v", told, is.Usage)
		}
	})
}

// noSpare leaves a volume nowhere to go to.
func (s *stand) noSpare(v drivebay.Volume) {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		s.must(s.mgr.Cordon(s.Context(), d.ID, !slices.Contains(v.Location.Drives, d.ID)))
	}
}

// TestReleaseOfMountedVolume: a volume that is mounted at a path that no record names is not released.
func TestReleaseOfMountedVolume(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		s.noSpare(v)
		at := place(kubelet + "/by-hand")
		s.must(s.sim.MakeFolder(at), s.sim.Mount(s.Context(), host.NewMount{Device: "/dev/" + s.device(v), FS: "ext4", At: at}))
		s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
		time.Sleep(time.Minute)
		if err := s.e.ReleaseVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) || !strings.Contains(err.Error(), "by-hand") {
			t.Errorf("released while mounted: %v", err)
		}
	})
}

// TestReleaseOfUnreadDrive: the records are lost, and it is not known what is on a drive. It is not
// released: that would say that nothing depends on it, and its volumes would never be found again. The
// release goes on by itself once the volumes are known.
func TestReleaseOfUnreadDrive(t *testing.T) {
	t.Parallel()
	flip := func(at int64) func(*stand, drivebay.Volume) {
		return func(s *stand, v drivebay.Volume) {
			d := s.driveOf(v)
			s.flip(firstPartition(&d), at, 4)
		}
	}
	unclaim := func(s *stand, _ drivebay.Volume) { s.claimAll(false) }
	claim := func(s *stand, v drivebay.Volume) {
		s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveCancel, ""))
		s.claimAll(true)
		s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
	}
	for _, c := range []struct {
		name, volume string
		hide, show   func(*stand, drivebay.Volume)
		waits        string
	}{
		{"label", "a linear volume", flip(512), flip(512), "LVM does not see the physical volume"},
		{"metadata header", "a linear volume", flip(4096 + 20), flip(4096 + 20), "LVM cannot read the metadata"},
		{"metadata text", "a linear volume", flip(4608 + 10), flip(4608 + 10), "LVM cannot read the metadata"},
		{"claim, partition", "a partition", unclaim, claim, "is in no record"},
		{"claim, linear", "a linear volume", unclaim, claim, "is in no record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[c.volume])
				id := v.Location.Drives[0]
				if v.Location.OnLVM() {
					s.must(s.stage(v))
					s.word(v, "first")
					s.must(s.unstage(v))
				}
				c.hide(s, v)
				s.loseRecord(v)
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
				time.Sleep(20 * time.Minute)
				d, _ := s.mgr.Snapshot().Find(id)
				if d.Usage != drivebay.UsageReleasing || d.Leaving == nil || !strings.Contains(d.Leaving.Cause, c.waits) {
					s.Fatalf("it is %v, and waits for %+v", d.Usage, d.Leaving)
				}
				c.show(s, v)
				s.usage(id, drivebay.UsageReleased, 30*time.Minute)
				if is := s.of(v); slices.Contains(is.Location.Drives, id) {
					t.Errorf("it is on %v", is.Location.Drives)
				}
				s.must(s.stage(s.of(v).Volume))
				if v.Location.OnLVM() && s.word(v, "") != "first" {
					t.Error("it has other data")
				}
			})
		})
	}
}

// TestReleaseOfAbsentDrive: a drive that died is released once its leg of a mirror is on another drive, also
// by a daemon that has never seen it: the records name all that was on it.
func TestReleaseOfAbsentDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a mirror"])
		id := v.Location.Drives[0]
		s.inject(id, "vanish")
		time.Sleep(10 * time.Second)
		s.restartAll(false)
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		s.usage(id, drivebay.UsageReleased, 10*time.Minute)
		if is := s.of(v); slices.Contains(is.Location.Drives, id) || len(is.Location.Drives) != 2 || is.Condition.Abnormal() {
			s.Errorf("the mirror is on %v: %s", is.Location.Drives, is.Condition.Message())
		}
	})
}
