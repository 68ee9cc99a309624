package drivemgr_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
)

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
