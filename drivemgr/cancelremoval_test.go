package drivemgr_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// slowLight is a machine whose enclosures take a while to switch a locate light.
type slowLight struct {
	*hostsim.Machine
	mounted *atomic.Pointer[host.Mount] // beside those of the machine; nil: nothing
}

func (m slowLight) Mounts(ctx context.Context) ([]host.Mount, error) {
	all, err := m.Machine.Mounts(ctx)
	if one := m.mounted.Load(); one != nil {
		all = append(all, *one)
	}
	return all, err
}

func (m slowLight) WriteFile(file string, b []byte) error {
	if strings.HasSuffix(file, "/locate") {
		time.Sleep(5 * time.Second)
	}
	return m.Machine.WriteFile(file, b)
}

// TestCanceledRemoval: the light of a bay takes a while. A removal that an operator cancels meanwhile does not go on.
func TestCanceledRemoval(t *testing.T) {
	onSeen(t, hostsim.Generate(24), store.Memory(), drivemgr.Options{}, func(m *hostsim.Machine) host.Machine { return slowLight{m, new(atomic.Pointer[host.Mount])} }, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 2)
		r.must(r.mgr.Claim(r.Context(), d.ID, true), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""), r.mgr.Emptied(r.Context(), d.ID))
		approved := make(chan error)
		go func() { approved <- r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveApprove, "") }()
		time.Sleep(2 * time.Second)
		if is := r.drive(d.ID); is.Usage != drivebay.UsageRemoving {
			r.Fatal(is.Usage)
		}
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveCancel, ""))
		err := <-approved
		if !errors.Is(err, drivebay.ErrRefused) {
			r.Error(err)
		}
		time.Sleep(10 * time.Second)
		if is := r.drive(d.ID); is.Usage != drivebay.UsageInUse || is.Status != drivebay.StatusOnline {
			r.Errorf("its removal was canceled; it is %v, %v (%v)", is.Usage, is.Status, err)
		}
	})
}

// TestMountedDuringRemoval: what is mounted while the light is switched keeps its drive, also one that is removed by force.
func TestMountedDuringRemoval(t *testing.T) {
	var mounted atomic.Pointer[host.Mount]
	onSeen(t, hostsim.Generate(24), store.Memory(), drivemgr.Options{}, func(m *hostsim.Machine) host.Machine { return slowLight{m, &mounted} }, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 2)
		r.must(r.mgr.Claim(r.Context(), d.ID, true), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""))
		forced := make(chan error)
		go func() { forced <- r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveForce, "") }()
		time.Sleep(2 * time.Second)
		mounted.Store(&host.Mount{Source: "/dev/" + d.Name, DevNum: d.Paths[0].DevNum, FS: "ext4", Target: "/mnt"})
		err := <-forced
		time.Sleep(10 * time.Second)
		if is := r.drive(d.ID); !errors.Is(err, drivebay.ErrBusy) || is.Usage != drivebay.UsageFailed || is.Status != drivebay.StatusOnline {
			r.Errorf("it is mounted; it is %v, %v (%v)", is.Usage, is.Status, err)
		}
	})
}
