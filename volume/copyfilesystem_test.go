package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestCopyHasFilesystemOfItsSource: a copy has the filesystem of its source, not the default of its class. A repeated request for it gets it, also
// where the first one failed in the middle. A request that names another filesystem differs.
func TestCopyHasFilesystemOfItsSource(t *testing.T) {
	t.Parallel()
	class := func(fs string) drivebay.Class {
		return drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeDiscard, FSType: fs}
	}
	for _, of := range []string{"volume", "snapshot"} {
		onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
			m := &failingProgram{Machine: s.sim, done: true}
			s.machine, s.lvm = m, m
			s.start()
			v := s.make("v", drivebay.VolumeRequest{Class: class("xfs")})
			source := drivebay.Source{Volume: v.ID}
			if of == "snapshot" {
				snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				s.must(err)
				source = drivebay.Source{Snapshot: snap.ID}
			}
			r := drivebay.VolumeRequest{Name: "copy", Class: class("ext4"), Source: source}
			m.name.Store("lvm lvcreate")
			if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("%s: %v", of, err)
			}
			m.name.Store("")
			for range 2 {
				c, err := s.e.CreateVolume(s.Context(), r)
				if s.must(err); c.FSType != "xfs" || c.FSUUID != v.FSUUID {
					t.Errorf("%s: it has %s %s, its source %s %s", of, c.FSType, c.FSUUID, v.FSType, v.FSUUID)
				}
			}
			c := s.of(drivebay.Volume{ID: drivebay.VolumeID("copy")}).Volume
			s.must(s.stage(c), s.publish(c, "pod"))
			r.FSType = "ext4"
			if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrExists) {
				t.Errorf("%s: requested with ext4: %v", of, err)
			}
		})
	}
}

// TestFilesystemLeftOut: a volume was made, and the configuration leaves its filesystem out since. The repeated request gets it, and copies of it are
// made: neither needs mkfs. A new volume is refused.
func TestFilesystemLeftOut(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
		r := drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeDiscard, FSType: "xfs"}}
		v := s.make("v", r)
		s.opt.FSTypes = []string{"ext4"}
		s.start()
		if again := s.make("v", r); again.FSUUID != v.FSUUID {
			t.Errorf("requested again: %+v", again)
		}
		r.Name = "new"
		if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrNoSupport) {
			t.Errorf("a new one: %v", err)
		}
		r.Source = drivebay.Source{Volume: v.ID}
		if c := s.make("copy", r); c.FSType != "xfs" {
			t.Errorf("the copy has %s", c.FSType)
		}
	})
}
