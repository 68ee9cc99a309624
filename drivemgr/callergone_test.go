package drivemgr_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// slowDelete is a machine whose kernel takes a while to switch a light and to remove a drive.
type slowDelete struct{ *hostsim.Machine }

func (m slowDelete) WriteFile(file string, b []byte) error {
	if strings.HasSuffix(file, "/delete") || strings.HasSuffix(file, "/remove") || strings.HasSuffix(file, "/locate") {
		time.Sleep(5 * time.Second)
	}
	return m.Machine.WriteFile(file, b)
}

// TestRemovalWithoutItsCaller: a removal that has begun goes on when its caller goes: the kernel removes the drive all the same.
func TestRemovalWithoutItsCaller(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 7 * time.Second} { // while the light is switched, while the kernel removes the drive
		onSeen(t, hostsim.Generate(24), store.Memory(), drivemgr.Options{}, func(m *hostsim.Machine) host.Machine { return slowDelete{m} }, func(r *rig) {
			d := r.pick(drivebay.ProtocolATA, 2)
			r.must(r.mgr.Claim(r.Context(), d.ID, true), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""), r.mgr.Emptied(r.Context(), d.ID))
			ctx, cancel := context.WithTimeout(r.Context(), after)
			defer cancel()
			err := r.mgr.Operate(ctx, d.ID, drivebay.LeaveApprove, "")
			if err == nil {
				r.Errorf("after %v: the caller got no error", after)
			}
			time.Sleep(time.Minute)
			is := r.drive(d.ID)
			begun := is.Usage != drivebay.UsageReleased
			if begun && (is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline) || after > 0 && !begun {
				r.Errorf("after %v: it is %v, %v: %+v (%v)", after, is.Usage, is.Status, is.Leaving, err)
			}
		})
	}
}
