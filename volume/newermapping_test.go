package volume_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestNewerMapping: the records are older than a volume that is unlocked and in use: they name an earlier volume of its id. The calls for that one
// do not fail because of it, and nothing locks it.
func TestNewerMapping(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*stand, drivebay.Volume) error{
		"unstaged": func(s *stand, v drivebay.Volume) error { return s.unstage(v) },
		"given up": func(s *stand, v drivebay.Volume) error {
			return cmp.Or(s.unpublish(v, "pod"), s.unstage(v), s.e.ForgetVolume(s.Context(), v.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onMachine(t, fourSmall(), volume.Options{}, func(s *stand) {
				old := s.make("v", encryptedRequests()["a linear volume"])
				s.must(s.stage(old, with(rightKey)))
				older := s.copyOfStore()
				s.must(s.unstage(old), s.e.DeleteVolume(s.Context(), old.ID))
				time.Sleep(2 * time.Minute)
				s.inject(old.Location.Drives[0], "vanish")
				time.Sleep(10 * time.Second)
				v := s.make("v", encryptedRequests()["a partition"])
				s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
				was, _ := s.plain(v)
				s.stop()
				s.stop, s.st = nil, older
				s.start()
				time.Sleep(2 * time.Minute)
				if err := s.retried(func() error { return end(s, old) }); err != nil {
					t.Error(err)
				}
				if is, open := s.plain(v); !open || is != was {
					t.Errorf("the device of the volume in use is %q, it was %q", is, was)
				}
			})
		})
	}
}
