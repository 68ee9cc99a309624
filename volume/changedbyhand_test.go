package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// says wants a reason in the condition of a volume, or that it is sound ("").
func (s *stand) says(when string, v drivebay.Volume, reason string) {
	s.Helper()
	time.Sleep(2 * time.Minute)
	if is := s.of(v); reason == "" && is.Condition.Abnormal() || !strings.Contains(reasons(is.Condition), reason) {
		s.Errorf("%s: it says %q: %s", when, reasons(is.Condition), is.Condition.Message())
	}
}

// TestMirrorMadeLinear: an operator takes a leg out of a mirror with the commands of LVM. The mirror has one copy, and says so; what the
// leg has left is wiped as the class says when the volume is deleted.
func TestMirrorMadeLinear(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingMirror)
		r.Class.Wipe = drivebay.WipeZero
		v, keep := s.make("v", r), s.make("keep", r)
		s.must(s.stage(keep), s.stage(v))
		s.first(s.node(keep), "kept")
		s.strewn(v)
		d, _ := s.mgr.Snapshot().Find(v.Location.Drives[1])
		s.must(s.byHand("lvconvert", "--mirrors", "0", v.Location.VG+"/"+v.Location.LV, "/dev/"+firstPartition(d)))
		s.says("in use with one leg", v, "MirrorOutOfSync")
		s.must(s.unstage(v))
		s.says("with one leg", v, "MirrorOutOfSync")
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		for _, id := range v.Location.Drives {
			if s.anywhere(id, mark) {
				t.Errorf("it was deleted, and drive %s has its data", id)
			}
		}
		if got := s.first(s.node(keep), ""); !strings.HasPrefix(got, "kept") {
			t.Errorf("the other volume reads %q", got)
		}
		s.says("the other volume", keep, "")
	})
}

// TestGroupNotOurs: a volume group that has lost the tag of drivebay, or is exported, is not changed and not activated: its volumes are not
// reported as sound, and are as before when it is back.
func TestGroupNotOurs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ do, undo []string }{
		"without its tag": {[]string{"vgchange", "--deltag", "drivebay"}, []string{"vgchange", "--addtag", "drivebay"}},
		"exported":        {[]string{"vgexport"}, []string{"vgimport"}},
	} {
		for _, b := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("v", rawVolume(b))
				s.must(s.byHand(append(c.do, v.Location.VG)...))
				s.says(name, v, "VolumeNotFound")
				if err := s.stage(v); err == nil {
					t.Errorf("%s, %s: staged", name, b)
				}
				if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
					t.Errorf("%s, %s: deleted", name, b)
				}
				s.must(s.byHand(append(c.undo, v.Location.VG)...))
				time.Sleep(5 * time.Minute)
				s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
			})
		}
	}
}

// TestLogicalVolumeChanged: an operator makes a logical volume read-only, or lets a thin pool give out blocks as they are. A growth makes the
// pool zero its blocks again.
func TestLogicalVolumeChanged(t *testing.T) {
	t.Parallel()
	const reason = "LogicalVolumeChanged"
	for _, b := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			v := s.make("v", rawVolume(b))
			path, pool := v.Location.VG+"/"+v.Location.LV, v.Location.VG+"/"+v.Location.Pool
			s.must(s.stage(v), s.publish(v, "pod"), s.byHand("lvchange", "--permission", "r", path))
			s.says("read-only", v, reason)
			s.must(s.byHand("lvchange", "--permission", "rw", path))
			s.says("writable", v, "")
			if b != drivebay.BackingThin {
				return
			}
			s.must(s.byHand("lvchange", "--zero", "n", pool))
			s.says("without zeroing", v, reason)
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
			s.must(err)
			s.says("grown", v, "")
		})
	}
}
