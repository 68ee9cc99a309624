package volume_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// beforeCopy calls a function before LVM makes a snapshot or a copy.
type beforeCopy struct {
	lvm.Runner
	call func()
}

func (b *beforeCopy) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if slices.Contains(argv, "--snapshot") && b.call != nil {
		call := b.call
		b.call = nil
		call()
	}
	return b.Runner.Run(ctx, argv...)
}

// TestSourceIsNotWipedMeanwhile: a volume is deleted while LVM makes a snapshot or a copy of it. The
// deletion waits, or the snapshot is refused: none shows a volume that was wiped.
func TestSourceIsNotWipedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, copied := range []bool{false, true} {
		var wiped, created chan struct{}
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			wiped, created = make(chan struct{}), make(chan struct{})
			s.opt.After = func(_, name string) error {
				if name == "wipe" {
					close(wiped)
					<-created
				}
				return nil
			}
			before := &beforeCopy{Runner: s.sim}
			s.lvm = before
			s.start()
			r := requests()["a thin volume"]
			r.Class.Wipe = drivebay.WipeZero
			v := s.make("v", r)
			s.put(v, "data")
			deleted := make(chan error, 1)
			before.call = func() {
				go func() { deleted <- s.e.DeleteVolume(s.Context(), v.ID) }()
				select {
				case <-wiped:
				case err := <-deleted:
					deleted <- err
				}
			}
			var is drivebay.Volume
			var err error
			if copied {
				c := r
				c.Name, c.Source, c.Size = "copy", drivebay.Source{Volume: v.ID}, drivebay.SizeRange{Required: v.Size}
				is, err = s.e.CreateVolume(s.Context(), c)
			} else {
				var snap drivebay.VolumeSnapshot
				snap, err = s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				if err == nil {
					c := r
					c.Name, c.Source, c.Size = "copy", drivebay.Source{Snapshot: snap.ID}, drivebay.SizeRange{Required: v.Size}
					is, err = s.e.CreateVolume(s.Context(), c)
				}
			}
			close(created)
			if refused := <-deleted; err != nil || !errors.Is(refused, drivebay.ErrPending) {
				t.Errorf("copied %v: %v; deletion: %v", copied, err, refused)
			}
			if err == nil && !s.has(is, "data") {
				t.Errorf("copied %v: a copy is acknowledged and shows a volume that was wiped", copied)
			}
		})
	}
}
