package volume_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// panicking is a machine on which a listing of the drives panics.
type panicking struct {
	*hostsim.Machine
	on atomic.Bool
}

func (m *panicking) ReadDir(name string) ([]string, error) {
	if m.on.Load() && strings.HasPrefix(name, "sys/block/") {
		panic("no such thing")
	}
	return m.Machine.ReadDir(name)
}

// TestPanicInListing: a panic in a listing ends that listing, and no other work of the daemon.
func TestPanicInListing(t *testing.T) {
	t.Parallel()
	onMachine(t, fourDrives, volume.Options{}, func(s *stand) {
		m := &panicking{Machine: s.sim}
		s.machine = m
		s.start()
		v := s.make("v", requests()["ext4 on a partition"])
		m.on.Store(true)
		time.Sleep(time.Hour)
		m.on.Store(false)
		time.Sleep(11 * time.Minute)
		s.must(s.stage(v), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	})
}
