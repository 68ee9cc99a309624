// Package election lets one of several processes lead: the one that holds a Lease.
package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// The times are those of the controllers of Kubernetes (k8s.io/component-base/config/v1alpha1, defaults).
const (
	leaseTime  = 15 * time.Second
	renewTime  = 10 * time.Second
	retryEvery = 2 * time.Second
)

// Options are the settings of an election.
type Options struct {
	Leases    coordinationclient.LeasesGetter
	Namespace string
	Name      string // of the Lease
	Identity  string // of this process
	Log       *slog.Logger
	Lead      func()              // is called when this process leads
	Follow    func(leader string) // is called when another process leads
}

// ErrLost ends a process that has led.
var ErrLost = errors.New("another process leads now")

// Run takes part in the election until ctx ends, and returns ErrLost once this process does not lead any more. The process
// then has to end: what waits for it, like the sidecars of a CSI plugin, begins again with the next leader.
func Run(ctx context.Context, opt Options) error {
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Name: opt.Name, Namespace: opt.Namespace}, Client: opt.Leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: opt.Identity},
	}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: retryEvery, ReleaseOnCancel: true, Name: opt.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				opt.Log.Info("this controller leads", "op", "kube", "identity", opt.Identity)
				opt.Lead()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				if leader != opt.Identity {
					opt.Log.Info("another controller leads", "op", "kube", "leader", leader)
					opt.Follow(leader)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	e.Run(klog.NewContext(ctx, logr.Discard())) // it logs each try
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("leader election: %w", ErrLost)
}
