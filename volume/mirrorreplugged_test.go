package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
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
