package volume_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// waiting is an lvm that waits before one of its commands, once.
type waiting struct {
	lvm.Runner
	command string
	armed   atomic.Bool
	came    chan struct{}
	goOn    chan struct{}
}

func (r *waiting) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if slices.Contains(argv, r.command) && r.armed.CompareAndSwap(true, false) {
		close(r.came)
		<-r.goOn
	}
	return r.Runner.Run(ctx, argv...)
}

// TestSnapshotWhileItGrows: a snapshot is requested while its source grows. It has the size that the source has when it is made, and a volume of
// that size can be made from it.
func TestSnapshotWhileItGrows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a thin volume", "ext4 on thin"} {
		onMachine(t, drivesOf("20GB"), volume.Options{}, func(s *stand) {
			w := &waiting{Runner: s.sim, command: "lvextend", came: make(chan struct{}), goOn: make(chan struct{})}
			s.lvm = w
			s.start()
			r := requests()[name]
			v := s.make("v", r)
			w.armed.Store(true)
			grown, made := make(chan error, 1), make(chan drivebay.VolumeSnapshot, 1)
			go func() {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
				grown <- err
			}()
			<-w.came
			go func() {
				snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				if err != nil {
					t.Error(err)
				}
				made <- snap
			}()
			time.Sleep(500 * time.Millisecond)
			close(w.goOn)
			s.must(<-grown)
			snap := <-made
			if snap.Size != 2<<30 {
				t.Errorf("%s: a snapshot of 2 GiB is said to have %d bytes", name, snap.Size)
			}
			r.Name, r.Source.Snapshot, r.Size = "copy", snap.ID, drivebay.SizeRange{Required: snap.Size, Limit: snap.Size}
			if _, err := s.e.CreateVolume(s.Context(), r); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
