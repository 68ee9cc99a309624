// Package election lets one of several processes lead: the one that holds a Lease.
//
// It does what k8s.io/client-go/tools/leaderelection does, whose package of locks contains the client of every group
// of Kubernetes: 15 MB of program and 7 MiB of resident memory, in the daemon of each node as well.
package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay/internal/kube/client"
)

// The times are those of the controllers of Kubernetes (k8s.io/component-base/config/v1alpha1, defaults).
const (
	leaseTime  = 15 * time.Second
	renewTime  = 10 * time.Second // a leader that cannot renew the Lease for so long gives up, before another one may take it
	retryEvery = 2 * time.Second
)

// Leases reads and writes Leases. A write of an older version than the API server has is a conflict.
type Leases interface {
	Get(ctx context.Context, name string) (*coordinationv1.Lease, error)
	Write(ctx context.Context, lease *coordinationv1.Lease, owner string) (*coordinationv1.Lease, error)
}

// Options are the settings of an election.
type Options struct {
	Leases   Leases
	Name     string // of the Lease
	Identity string // of this process
	Log      *slog.Logger
	Lead     func()              // is called when this process leads
	Follow   func(leader string) // is called when another process leads
}

// ErrLost ends a process that has led.
var ErrLost = errors.New("this process does not lead any more")

// candidate is a process in an election.
type candidate struct {
	opt     Options
	leads   bool
	renewed time.Time // the last own renewal began
	seen    coordinationv1.LeaseSpec
	since   time.Time // when seen was first read, by the own clock: the clocks of others do not matter
}

// Run takes part in the election until ctx ends, and returns ErrLost once this process does not lead any more. The process
// then has to end: what waits for it, like the sidecars of a CSI plugin, begins again with the next leader.
func Run(ctx context.Context, opt Options) error {
	c := &candidate{opt: opt}
	for {
		if err := c.round(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			c.release()
			return nil
		case <-time.After(retryEvery):
		}
	}
}

// round tries to hold the Lease.
func (c *candidate) round(ctx context.Context) error {
	began, limit := time.Now(), renewTime/2
	if c.leads {
		limit = min(limit, renewTime-began.Sub(c.renewed)) // no answer that comes later keeps the lead
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := c.opt.Leases.Get(ctx, c.opt.Name)
	if apierrors.IsNotFound(err) {
		l, err = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: c.opt.Name}}, nil
	}
	if err == nil && c.may(l, began) {
		c.take(l)
		if _, err = c.opt.Leases.Write(ctx, l, client.ControllerOwner); err == nil {
			if c.renewed = began; !c.leads {
				c.leads = true
				c.opt.Log.Info("this controller leads", "op", "kube", "identity", c.opt.Identity)
				c.opt.Lead()
			}
			return nil
		}
	}
	switch {
	case c.leads && err == nil:
		return fmt.Errorf("%w: %s holds the Lease %s", ErrLost, holder(l.Spec), c.opt.Name)
	case c.leads && time.Since(c.renewed) >= renewTime:
		return fmt.Errorf("%w: the Lease %s cannot be renewed: %w", ErrLost, c.opt.Name, err)
	}
	return nil
}

// may reports whether this process may write the Lease: it holds it, or the holder has not renewed it for leaseTime.
func (c *candidate) may(l *coordinationv1.Lease, now time.Time) bool {
	who := holder(l.Spec)
	if who == c.opt.Identity || who == "" {
		return true
	}
	if c.since.IsZero() || who != holder(c.seen) || !l.Spec.RenewTime.Equal(c.seen.RenewTime) {
		if who != holder(c.seen) && !c.leads {
			c.opt.Log.Info("another controller leads", "op", "kube", "leader", who)
			c.opt.Follow(who)
		}
		c.seen, c.since = l.Spec, now
	}
	return !c.leads && now.Sub(c.since) > leaseTime
}

func holder(s coordinationv1.LeaseSpec) string {
	if s.HolderIdentity == nil {
		return ""
	}
	return *s.HolderIdentity
}

// take writes this process into the Lease.
func (c *candidate) take(l *coordinationv1.Lease) {
	now, seconds := metav1.NowMicro(), int32(leaseTime/time.Second)
	if holder(l.Spec) != c.opt.Identity {
		transitions := int32(0)
		if l.Spec.LeaseTransitions != nil {
			transitions = *l.Spec.LeaseTransitions + 1
		}
		l.Spec.AcquireTime, l.Spec.LeaseTransitions = &now, &transitions
	}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &c.opt.Identity, &seconds, &now
}

// release gives the Lease up, so that the next leader does not have to wait.
func (c *candidate) release() {
	if !c.leads {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), retryEvery)
	defer cancel()
	l, err := c.opt.Leases.Get(ctx, c.opt.Name)
	if err != nil || holder(l.Spec) != c.opt.Identity {
		return
	}
	none := ""
	l.Spec.HolderIdentity = &none
	_, _ = c.opt.Leases.Write(ctx, l, client.ControllerOwner) // else it expires
}
