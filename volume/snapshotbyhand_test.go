package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestSnapshotByHand: an operator makes a snapshot of a logical volume before an upgrade, or puts it behind a cache. LVM removes such a
// snapshot with its origin, and a wipe of the origin copies the old data to it. The volume is not deleted, nor wiped, before both are apart.
func TestSnapshotByHand(t *testing.T) {
	t.Parallel()
	snapshot := []string{"lvcreate", "--snapshot", "--name", "before"}
	for name, c := range map[string]struct {
		backing  drivebay.Backing
		do, undo []string
		reason   string // of the condition meanwhile
	}{
		"linear": {drivebay.BackingLVM, append(snapshot, "--size", "64M"), []string{"lvremove", "--yes", "before"}, ""},
		"mirror": {drivebay.BackingMirror, append(snapshot, "--size", "64M"), []string{"lvremove", "--yes", "before"}, ""},
		"thin":   {drivebay.BackingThin, snapshot, []string{"lvremove", "--yes", "before"}, ""},
		"cache":  {drivebay.BackingLVM, []string{"lvconvert", "--type", "cache", "--cachevol", "fast"}, []string{"lvconvert", "--uncache", "volume"}, "LogicalVolumeChanged"},
	} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			r := rawVolume(c.backing)
			r.Class.Wipe = drivebay.WipeZero
			v := s.make("v", r)
			path := v.Location.VG + "/" + v.Location.LV
			s.must(s.stage(v))
			s.first(s.node(v), "kept")
			s.must(s.unstage(v))
			if c.reason != "" {
				s.must(s.byHand("lvcreate", "--name", "fast", "--size", "64M", v.Location.VG))
			}
			s.must(s.byHand(append(c.do, path)...))
			if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) {
				t.Errorf("%s: deleted: %v", name, err)
			}
			s.says(name, v, c.reason)
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
			if refused := errors.Is(err, drivebay.ErrRefused); refused != (name == "linear" || name == "mirror") || !refused && err != nil {
				t.Errorf("%s: grown: %v", name, err)
			}
			if is := s.of(v); is.CSIStatus != drivebay.CSICreated {
				t.Errorf("%s: it is %v", name, is.CSIStatus)
			}
			s.must(s.stage(v))
			if got := s.first(s.node(v), ""); got[:4] != "kept" {
				t.Errorf("%s: it reads %q", name, got)
			}
			s.must(s.unstage(v))
			c.undo[len(c.undo)-1] = map[string]string{"before": v.Location.VG + "/before", "volume": path}[c.undo[len(c.undo)-1]]
			s.must(s.byHand(c.undo...))
			time.Sleep(time.Minute)
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
			if s.anywhere(v.Location.Drives[0], "kept") {
				t.Errorf("%s: it was deleted, and the drive has its data", name)
			}
		})
	}
}
