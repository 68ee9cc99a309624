package volume_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// extending is an lvm whose lvextend fails, or takes some time.
type extending struct {
	lvmRunner
	fails, slow atomic.Bool
}

func (r *extending) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if len(argv) > 1 && argv[1] == "lvextend" {
		if r.fails.Load() {
			return nil, errors.New("lvm: exit status 5")
		}
		if r.slow.Load() {
			time.Sleep(5 * time.Second)
		}
	}
	return r.lvmRunner.Run(ctx, argv...)
}

// TestThinPoolNotOvercommitted: the volumes of a thin pool never have more than the pool, whichever of them grows when: at the
// same time, again after it has failed, or as a record says that is older than the growth of the other one.
func TestThinPoolNotOvercommitted(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"at once", "retried", "older record"} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			l := &extending{lvmRunner: s.sim}
			s.lvm = l
			s.start()
			r := rawVolume(drivebay.BackingThin)
			a, b := s.make("a", r), s.make("b", r)
			left := s.free(r)
			all := a.Size + b.Size + left
			grow := func(v drivebay.Volume) error {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + left*3/4})
				return err
			}
			if when == "at once" {
				l.slow.Store(true)
				errs := make(chan error)
				for _, v := range []drivebay.Volume{a, b} {
					go func() { errs <- grow(v) }()
				}
				if one, other := <-errs, <-errs; (one == nil) == (other == nil) || !errors.Is(errors.Join(one, other), drivebay.ErrRange) {
					t.Errorf("%s: %v, %v", when, one, other)
				}
			} else {
				l.fails.Store(true)
				if err := grow(a); err == nil {
					t.Fatalf("%s: it has grown", when)
				}
				l.fails.Store(false)
				older := s.record(a)
				if when == "older record" {
					s.must(s.e.ClearVolume(s.Context(), a.ID), grow(b))
					s.stop()
					s.stop = nil
					s.must(s.st.PutVolume(older))
					s.start()
				} else if err := grow(b); !errors.Is(err, drivebay.ErrRange) {
					t.Errorf("%s: the other one: %v", when, err)
				}
				if err := s.e.RetryVolume(s.Context(), a.ID); (err == nil) != (when == "retried") {
					t.Errorf("%s: %v", when, err)
				}
			}
			if sum := s.of(a).Size + s.of(b).Size; sum > all {
				t.Errorf("%s: the pool has %d bytes, and its volumes %d", when, all, sum)
			}
		})
	}
}
