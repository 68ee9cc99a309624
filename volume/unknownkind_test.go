package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// TestVolumeOfUnknownKind: the records are lost, and a drive has a volume of a kind that this version does not know. The volume is shown with
// the reason, each call for it is UNAVAILABLE and gives the reason, nothing is made in its place, and the other volumes are not concerned.
func TestVolumeOfUnknownKind(t *testing.T) {
	t.Parallel()
	retag := func(from, to string) func(*stand, drivebay.Volume) {
		return func(s *stand, v drivebay.Volume) {
			_, err := s.sim.Run(s.Context(), "lvm", "lvchange", "--deltag", "drivebay:"+from, "--addtag", "drivebay:"+to, v.Location.VG+"/"+v.Location.LV)
			s.must(err)
		}
	}
	for name, c := range map[string]struct {
		backing drivebay.Backing
		change  func(*stand, drivebay.Volume)
	}{
		"type of a partition": {drivebay.BackingPartition, func(s *stand, v drivebay.Volume) {
			s.onDrive(s.driveOf(v).Name, func(disk host.Disk, table *gpt.Table) {
				table.Partitions[0].Type = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e99"
				s.must(table.Write(disk))
			})
		}},
		"mode of a linear volume": {drivebay.BackingLVM, retag("mode=RAW", "mode=OBJECT")},
		"mode of a thin volume":   {drivebay.BackingThin, retag("mode=RAW", "mode=OBJECT")},
		"what a volume is":        {drivebay.BackingLVM, retag("what=volume", "what=cache")},
		"kind of a group": {drivebay.BackingLVM, func(s *stand, v drivebay.Volume) {
			_, err := s.sim.Run(s.Context(), "lvm", "vgchange", "--deltag", "drivebay:kind=LVM", "--addtag", "drivebay:kind=RAID6", v.Location.VG)
			s.must(err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, tinyDrives(3), volume.Options{}, func(s *stand) {
				r := rawVolume(c.backing)
				v := s.make("v", r)
				s.mark(v)
				other := s.make("other", rawVolume(drivebay.BackingDrive))
				c.change(s, v)
				has := s.anywhere(v.Location.Drives[0], "acknowledged data") // the data of a thin volume are not on the simulated drive
				s.forget()
				time.Sleep(15 * time.Minute)
				set := s.e.Volumes()
				if len(set.Found) != 1 || set.Found[0].ID != v.ID || !strings.Contains(set.Found[0].Issue, "does not know") {
					t.Errorf("found: %+v", set.Found)
				}
				if len(s.events(drivebay.EventVolumeFound)) == 0 || !strings.Contains(strings.Join(s.events(drivebay.EventVolumeFound), "\n"), "does not know") {
					t.Errorf("events: %v", s.events(drivebay.EventVolumeFound))
				}
				s.must(s.e.Listed())
				r.Name, r.Size.Required = "v", 1<<30
				_, made := s.e.CreateVolume(s.Context(), r)
				_, _, grown := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
				for call, err := range map[string]error{"create": made, "stage": s.stage(v), "expand": grown, "delete": s.e.DeleteVolume(s.Context(), v.ID), "forget": s.e.ForgetVolume(s.Context(), v.ID)} {
					if !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "does not know") {
						t.Errorf("%s: %v", call, err)
					}
				}
				if err := s.e.AdoptVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "does not know") {
					t.Errorf("adopt: %v", err)
				}
				s.must(s.stage(other), s.unstage(other), s.e.DeleteVolume(s.Context(), other.ID))
				if has && !s.anywhere(v.Location.Drives[0], "acknowledged data") {
					t.Error("its data are gone")
				}
			})
		})
	}
}

// TestMirrorOfUnknownKindStays: a mirror of which no record can be made is in the group of another one, and a drive of both is released. The move of
// its group does not begin, because it could not end: when the drive stays, the other mirror is as before.
func TestMirrorOfUnknownKindStays(t *testing.T) {
	t.Parallel()
	onMachine(t, tinyDrives(4), volume.Options{}, func(s *stand) {
		small := rawVolume(drivebay.BackingMirror)
		small.Size.Required = 64 << 20
		v, w := s.make("v", rawVolume(drivebay.BackingMirror)), s.make("w", small)
		if v.Location.VG != w.Location.VG {
			t.Fatalf("they are in groups %s and %s", v.Location.VG, w.Location.VG)
		}
		_, err := s.sim.Run(s.Context(), "lvm", "lvchange", "--deltag", "drivebay:mode=RAW", "--addtag", "drivebay:mode=OBJECT", v.Location.VG+"/"+v.Location.LV)
		s.must(err)
		s.forget()
		time.Sleep(15 * time.Minute)
		drive := v.Location.Drives[0]
		s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveRelease, ""))
		time.Sleep(2 * time.Hour)
		if d, _ := s.mgr.Snapshot().Find(drive); d.Usage != drivebay.UsageReleasing || !strings.Contains(s.of(w).Condition.Message(), "in no record") {
			t.Errorf("the drive is %v; %s", d.Usage, s.of(w).Condition.Message())
		}
		s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveCancel, ""))
		time.Sleep(time.Hour)
		if is := s.of(w); is.Condition.Abnormal() || len(is.Location.Drives) != 2 {
			t.Errorf("it is on %v: %s", is.Location.Drives, is.Condition.Message())
		}
		_, _, err = s.e.ExpandVolume(s.Context(), w.ID, drivebay.SizeRange{Required: w.Size + 4<<20})
		s.must(err)
	})
}
