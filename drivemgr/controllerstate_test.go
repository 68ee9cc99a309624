package drivemgr_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// stuckController is a machine on which the kernel connects to one NVMe controller again.
type stuckController struct {
	host.Machine
	file  string
	stuck atomic.Bool
}

func (s *stuckController) ReadFile(name string) ([]byte, error) {
	if s.stuck.Load() && strings.HasSuffix(name, s.file) {
		return []byte("connecting\n"), nil
	}
	return s.Machine.ReadFile(name)
}

// TestControllerState: a controller that is not live for a moment is no finding; one that stays so is
// a finding after some ticks, although nothing of it changes any more.
func TestControllerState(t *testing.T) {
	m := &stuckController{file: "/nvme2n1/device/state"}
	as := func(sim *hostsim.Machine) host.Machine { m.Machine = sim; return m }
	onSeen(t, hostsim.Generate(24), nil, drivemgr.Options{}, as, func(r *rig) {
		d, ok := r.mgr.Snapshot().Find("nvme2n1")
		if !ok {
			r.Fatal("there is no such drive")
		}
		suspected := func() bool {
			return slices.ContainsFunc(r.drive(d.ID).Findings, func(f drivebay.Finding) bool { return f.Code == "NVMeController" })
		}
		time.Sleep(time.Second) // between two ticks
		m.stuck.Store(true)
		time.Sleep(2 * time.Second)
		if k := r.drive(d.ID).Kernel; k.State != "connecting" || suspected() {
			r.Fatalf("after one tick: %q, %v", k.State, r.drive(d.ID).Findings)
		}
		r.until("it is suspected", 6*time.Second, suspected)
	})
}
