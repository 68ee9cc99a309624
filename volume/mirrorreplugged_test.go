package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestMirrorMadeWhileReplugged: a drive of a new mirror is pulled and put back before anything is written to the mirror, which stays active with
// the other leg. Once the volume is created, both legs have all of it.
func TestMirrorMadeWhileReplugged(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"raw": requests()["a mirror"], "encrypted": encryptedRequests()["a mirror"], "btrfs": requests()["btrfs on a mirror"]} {
		for leg := range 2 {
			t.Run(name, func(t *testing.T) {
				var replug func()
				after := func(_, step string) error {
					if step == "volume" && replug != nil {
						replug()
						replug = nil
					}
					return nil
				}
				onMachine(t, nvmeDrives(2), volume.Options{After: after}, func(s *stand) {
					replug = func() {
						records, err := s.st.Volumes()
						s.must(err)
						d := records[drivebay.VolumeID("v")].Volume.Location.Drives[leg]
						s.inject(d, "vanish")
						time.Sleep(10 * time.Second)
						s.inject(d, "return")
						time.Sleep(time.Minute)
					}
					r.Name, r.Size.Required = "v", 64<<20
					s.must(s.retried(func() error { _, err := s.e.CreateVolume(s.Context(), r); return err }))
					time.Sleep(10 * time.Minute)
					v := s.of(drivebay.Volume{ID: drivebay.VolumeID("v")}).Volume
					for _, d := range v.Location.Drives {
						s.inject(d, "vanish")
						time.Sleep(time.Minute)
						s.must(s.stage(v, with(rightKey)))
						s.must(s.unstage(v))
						s.inject(d, "return")
						time.Sleep(10 * time.Minute)
						s.must(s.stage(v, with(rightKey)))
						time.Sleep(10 * time.Minute)
						s.must(s.unstage(v))
					}
				})
			})
		}
	}
}

// TestDoubtOfAnOlderRecord: records say that a mirror is being made, which it was when they were stored, and one of its drives is away: it is not
// known which leg is newer. Once the drive is back it is, and the mirror can be used after a retry.
func TestDoubtOfAnOlderRecord(t *testing.T) {
	t.Parallel()
	var keep func()
	after := func(_, step string) error {
		if step == "mkfs" {
			keep()
		}
		return nil
	}
	onMachine(t, nvmeDrives(2), volume.Options{After: after}, func(s *stand) {
		var older *store.Mem
		keep = func() { older = s.copyOfStore() }
		v := s.make("v", requests()["btrfs on a mirror"])
		s.must(s.stage(v), s.unstage(v))
		keep = func() {}
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		s.stop()
		s.stop = nil
		s.st = older
		s.start()
		time.Sleep(time.Minute)
		_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 * v.Size})
		if c := s.conditions(v.ID); err == nil || !strings.Contains(reasons(c), "MirrorLegStale") {
			t.Fatalf("without a leg: %v, %+v", err, c)
		}
		s.inject(v.Location.Drives[0], "return")
		time.Sleep(10 * time.Minute)
		if c := s.conditions(v.ID); strings.Contains(reasons(c), "MirrorLegStale") {
			t.Errorf("with both legs: %+v", c)
		}
		s.must(s.e.RetryVolume(s.Context(), v.ID))
		s.must(s.stage(v), s.unstage(v))
	})
}
