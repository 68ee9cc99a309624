package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestResumedRemovalSparesTheNextVolume: the daemon is killed in the middle of a removal. After
// the start the removal is asked for again, and a volume of the same name is made and grows,
// while the engine still waits to resume the removal. The new volume is not removed.
func TestResumedRemovalSparesTheNextVolume(t *testing.T) {
	t.Parallel()
	for range 60 / everyNth { // the order of the goroutines decides
		k := &killer{}
		onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
			r := requests()["a partition"]
			v := s.make("v", r)
			killed := func(ask func() error) {
				s.Helper()
				k.arm(1)
				err := ask()
				for ; errors.Is(err, drivebay.ErrPending) && !k.dead(); err = ask() { // what is resumed holds the volume for a moment
					time.Sleep(time.Millisecond)
				}
				if !errors.Is(err, errKilled) {
					s.Fatal(err)
				}
				s.stop()
				s.stop = nil
				s.begin()
				for err = ask(); errors.Is(err, drivebay.ErrPending) || errors.Is(err, drivebay.ErrBusy) || errors.Is(err, drivebay.ErrUnavailable); err = ask() {
					time.Sleep(time.Millisecond)
				}
				s.must(err)
			}
			killed(func() error { return s.e.DeleteVolume(s.Context(), v.ID) })
			r.Name, r.Size.Required = "v", 1<<30
			s.must(s.retried(func() error { is, err := s.e.CreateVolume(s.Context(), r); v = is; return err }))
			killed(func() error {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
				return err
			})
			time.Sleep(10 * time.Second)
			if is := s.of(v); is.Size != 2<<30 || is.CSIStatus != drivebay.CSICreated {
				t.Errorf("it is %+v", is.Volume)
			}
			s.must(s.stage(v), s.unstage(v))
		})
		if t.Failed() {
			return
		}
	}
}
