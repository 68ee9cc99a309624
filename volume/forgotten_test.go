package volume_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestNewestDeletionIsKept: however many forgotten volumes the store has, a new deletion stays in it, and
// the oldest deletion is dropped.
func TestNewestDeletionIsKept(t *testing.T) {
	t.Parallel()
	const most = 4096
	for name, instance := range map[string]string{"forgotten volumes": "created 2020-01-01T00:00:00Z", "deletions": ""} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, fourDrives, volume.Options{}, func(s *stand) {
				v := s.make("v", requests()["a partition"])
				key := func(i int) drivebay.ForgottenVolume {
					return drivebay.ForgottenVolume{ID: fmt.Sprintf("%026d", i), Instance: instance, At: time.Now().Add(time.Duration(i-most) * time.Second)}
				}
				for i := range most {
					s.must(s.st.PutForgotten(key(i)))
				}
				s.start()
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				all, err := s.st.Forgotten()
				s.must(err)
				if _, is := all[drivebay.ForgottenVolume{ID: v.ID}.Key()]; !is {
					t.Error("the new deletion is dropped")
				}
				if _, is := all[key(0).Key()]; is != (instance != "") {
					t.Errorf("the oldest entry is kept: %v", is)
				}
				if _, is := all[key(1).Key()]; !is {
					t.Error("the second oldest entry is dropped")
				}
			})
		})
	}
}
