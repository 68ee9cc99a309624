package drivemgr_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// unreadable is a machine whose sysfs cannot be read for one drive.
type unreadable struct {
	*hostsim.Machine
	at string // its folder
}

func (m unreadable) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, m.at+"/size") {
		return nil, fs.ErrPermission
	}
	return m.Machine.ReadFile(name)
}

// TestRemovalOfAnUnknownDrive: after a restart a drive cannot be listed. It may be in the machine and in use: it is not said to be out.
func TestRemovalOfAnUnknownDrive(t *testing.T) {
	st := store.Memory()
	onRack(t, 24, st, drivemgr.Options{}, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 2)
		r.must(r.mgr.Claim(r.Context(), d.ID, true), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""))
		time.Sleep(time.Minute)
		again := drivemgr.New(unreadable{r.sim, d.Name}, st, drivemgr.Options{})
		ctx, cancel := context.WithCancel(r.Context())
		done := make(chan error)
		go func() { done <- again.Run(ctx) }()
		time.Sleep(20 * time.Second)
		if is, ok := again.Snapshot().Find(d.ID); !ok || is.Status != drivebay.StatusUnknown || again.Snapshot().Complete {
			r.Fatalf("%+v", is)
		}
		err := again.Operate(r.Context(), d.ID, drivebay.LeaveForce, "")
		if is, _ := again.Snapshot().Find(d.ID); !errors.Is(err, drivebay.ErrBusy) || is.Usage != drivebay.UsageReleasing {
			r.Errorf("it is in the machine, and is %v, %+v: %v", is.Usage, is.Leaving, err)
		}
		cancel()
		r.must(<-done)
	})
}
