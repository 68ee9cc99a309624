package volume_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestLateAnswer: a drive answers after its caller has gone. Nothing is asked or written for
// that caller any more, and the answer is dropped (the race detector sees that).
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]string{"within a question": "40s", "within a read": "70s"} {
		t.Run(name, func(t *testing.T) {
			onStand(t, func(s *stand) {
				v := s.make("v", requests()["ext4 on a partition"])
				d := s.drive(v)
				s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "slow", Args: hostsim.Args{"delay": delay}}))
				var asked atomic.Bool
				before := len(s.sim.Written("/dev/" + d.Name))
				if yes, err := s.e.AskTable(s.Context(), d.ID, func() (bool, error) { asked.Store(true); return true, nil }); !errors.Is(err, drivebay.ErrTimeout) {
					s.Errorf("%v, %v; want a timeout", yes, err)
				}
				ctx, cancel := context.WithTimeout(s.Context(), 50*time.Second)
				defer cancel()
				if err := s.e.DeleteVolume(ctx, v.ID); err == nil {
					s.Error("deleted")
				}
				time.Sleep(30 * time.Minute)
				if asked.Load() {
					s.Error("it was asked for a caller that had gone")
				}
				if after := len(s.sim.Written("/dev/" + d.Name)); after != before {
					s.Errorf("%d places of the drive were written before, %d are now", before, after)
				}
				s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "heal"}))
				time.Sleep(time.Minute)
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				s.blank()
			})
		})
	}
}

// TestLateMount: a stage times out on a slow drive, and unstage succeeds. Nothing is mounted
// afterwards, and the volume can be deleted.
func TestLateMount(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		d := s.drive(v)
		s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "slow", Args: hostsim.Args{"delay": "70s"}}))
		if err := s.stage(v); !errors.Is(err, drivebay.ErrTimeout) {
			s.Errorf("staged: %v", err)
		}
		s.must(s.unstage(v), s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "heal"}))
		time.Sleep(10 * time.Minute)
		if n := len(s.mounts(staging(v))); n > 0 {
			s.Errorf("%d mounts; record: %+v", n, s.of(v).Publications)
		}
		s.must(s.e.DeleteVolume(s.Context(), v.ID))
	})
}
