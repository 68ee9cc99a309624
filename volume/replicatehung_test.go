package volume_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
	"github.com/drivebay/drivebay/volume"
)

// hungDRBD is a DRBD whose kernel does not answer while hung: a configuration call holds its lock and waits for a disk.
type hungDRBD struct {
	drbd.Kernel
	hung  *atomic.Bool
	until chan struct{}
}

func (k hungDRBD) Status(ctx context.Context, minor uint32) (drbd.Status, error) {
	if k.hung.Load() {
		<-k.until
	}
	return k.Kernel.Status(ctx, minor)
}

func (k hungDRBD) List(ctx context.Context) ([]drbd.Status, error) {
	if k.hung.Load() {
		<-k.until
	}
	return k.Kernel.List(ctx)
}

// clocked is a machine whose clock can be set.
type clocked struct {
	host.Worker
	clock *hosttest.Clock
}

func (c clocked) Now() time.Time                         { return c.clock.Now() }
func (c clocked) After(d time.Duration) <-chan time.Time { return c.clock.After(d) }

// hangs prepares a site whose DRBD does not answer from hang to answer.
func (s *stand) hangs() (hang, answer func()) {
	var hung atomic.Bool
	until, open := make(chan struct{}), s.opt.DRBD
	s.opt.DRBD = func() (drbd.Kernel, error) {
		k, err := open()
		if err != nil {
			return nil, err
		}
		return hungDRBD{k, &hung, until}, nil
	}
	return func() { hung.Store(true) }, func() { hung.Store(false); close(until) }
}

// TestReplicationUnanswered: a replication is not healthy while the kernel does not say so, also where the clock was set back
// since the kernel was asked.
func TestReplicationUnanswered(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]time.Duration{"a clock that goes on": 0, "a clock that was set back": -365 * 24 * time.Hour} {
		onTwoSites(t, volume.Options{}, func(a, b *stand, network func(bool)) {
			hang, answer := a.hangs()
			clock := &hosttest.Clock{}
			a.machine = clocked{a.sim, clock}
			a.start()
			v := replicated(a, b, requests()["ext4 on a partition"])
			bothReady("before", v, a, b)
			hang()
			time.Sleep(30 * time.Second)
			clock.Set(set)
			network(false)
			time.Sleep(5 * time.Minute)
			if c := a.conditions(v.ID); !c.Abnormal() {
				t.Errorf("%s, without an answer of DRBD, and without its peer: %s", name, c.Message())
			}
			answer()
			network(true)
			time.Sleep(5 * time.Minute)
			bothReady("it answers again", v, a, b)
		})
	}
}

// TestReplicationUnansweredAtStart: a daemon that starts while the kernel's DRBD does not answer says of no replication that nothing is wrong
// with it: nothing of before counts.
func TestReplicationUnansweredAtStart(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{}, func(a, b *stand, network func(bool)) {
		v := replicated(a, b, requests()["ext4 on a partition"])
		bothReady("before", v, a, b)
		a.stop()
		a.stop = nil
		hang, answer := a.hangs()
		hang()
		network(false)
		a.start()
		for range 12 {
			time.Sleep(10 * time.Second)
			if set := a.e.Volumes(); set.Seq > 0 && !a.conditions(v.ID).Abnormal() {
				t.Errorf("it was never asked, and is without its peer: %+v", a.of(v).Facts.Replication)
				break
			}
		}
		answer()
		network(true)
		time.Sleep(5 * time.Minute)
		bothReady("it answers", v, a, b)
	})
}
