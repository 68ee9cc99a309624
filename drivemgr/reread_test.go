package drivemgr_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// blank is the first drive of the rack that is blank and not claimed.
func (r *rig) blank() drivebay.Drive {
	r.Helper()
	for _, d := range r.mgr.Snapshot().Drives {
		if d.Content.Kind == drivebay.ContentBlank && d.Claim == nil {
			return d
		}
	}
	r.Fatal("no drive is blank")
	return drivebay.Drive{}
}

// claimed claims the first drive of the rack that can be.
func (r *rig) claimed() *drivebay.Drive {
	r.Helper()
	for _, d := range r.mgr.Snapshot().Drives {
		if d.Content.Kind == drivebay.ContentBlank && r.mgr.Claim(r.Context(), d.ID, true) == nil {
			return &d
		}
	}
	r.Fatal("no drive could be claimed")
	return nil
}

// TestWrittenOverIsSeen: what another program writes to a claimed drive
// is seen at the next look.
func TestWrittenOverIsSeen(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		d := r.claimed()
		time.Sleep(25 * time.Minute)
		disk, err := r.sim.OpenDisk(hostsim.As(r.Context(), "hand"), "/dev/"+d.Name, false)
		r.must(err)
		_, err = disk.WriteAt([]byte("LABELONE"), 512)
		r.must(err)
		r.until("it is not blank any more", 11*time.Minute, func() bool { return r.drive(d.ID).Content.Kind == drivebay.ContentForeign })
		r.must(disk.Close())
	})
}

// TestBackAtOnce: a drive that was pulled and put back before it was listed again is
// another device: all of it is read anew, at once.
func TestBackAtOnce(t *testing.T) {
	for _, rename := range []string{"rename=true", "rename=false"} {
		onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
			d := r.claimed()
			time.Sleep(30 * time.Second)
			before := r.drive(d.ID).Evidence.At
			r.inject(d.Serial, "vanish")
			r.inject(d.Serial, "return", rename)
			time.Sleep(3 * time.Second)
			if is := r.drive(d.ID); is.Status != drivebay.StatusOnline || !is.Evidence.At.After(before) {
				r.Errorf("%s: it is %v, and was looked at last %v, before that %v", rename, is.Status, is.Evidence.At, before)
			}
		})
	}
}

// deaf is a machine that hears no uevents, as in a network namespace that is not the host's.
type deaf struct{ host.Machine }

func (deaf) Uevents(context.Context) (<-chan host.Uevent, error) { return nil, host.ErrUnsupported }

// TestUseEnds: what is said of a drive because of who used it ends with the use, and the
// drive is read anew, whether or not uevents tell of it. Written may come before the drive
// is listed without the use.
func TestUseEnds(t *testing.T) {
	for _, hears := range []bool{true, false} {
		for _, written := range []bool{true, false} {
			as := func(m *hostsim.Machine) host.Machine {
				if hears {
					return m
				}
				return deaf{m}
			}
			onSeen(t, hostsim.Generate(24), nil, drivemgr.Options{}, as, func(r *rig) {
				d := r.blank()
				disk, err := r.sim.OpenDisk(hostsim.As(r.Context(), "hand"), "/dev/"+d.Name, true)
				r.must(err)
				r.must(disk.AddPartition(1, 1<<20, 1<<30))
				r.must(r.mgr.Refresh(r.Context()))
				r.until("it is in use", time.Minute, func() bool { return r.drive(d.ID).Content.Kind == drivebay.ContentForeign })
				r.must(disk.RemovePartition(1))
				limit := 6 * time.Minute // it is listed every five
				if written {
					r.must(r.mgr.Written(r.Context(), d.ID))
					limit = 15 * time.Second
				}
				r.until(fmt.Sprintf("it is blank again, hears %v, written %v", hears, written), limit, func() bool { return r.drive(d.ID).Content.Kind == drivebay.ContentBlank })
				r.must(disk.Close())
			})
		}
	}
}
