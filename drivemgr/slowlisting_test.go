package drivemgr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestListingThatHangs: while a listing hangs, a drive that is pulled stays ONLINE. The list of drives is not complete then.
func TestListingThatHangs(t *testing.T) {
	slow := &slowSysfs{file: "removable"} // the listing alone reads it
	as := func(m *hostsim.Machine) host.Machine { slow.Machine = m; return slow }
	onSeen(t, hostsim.Generate(24), nil, drivemgr.Options{}, as, func(r *rig) {
		d := *r.pick(drivebay.ProtocolATA, 2)
		for _, x := range r.mgr.Snapshot().Drives {
			if x.Protocol == drivebay.ProtocolATA || x.Protocol == drivebay.ProtocolSCSI {
				slow.last = max(slow.last, x.Name)
			}
		}
		slow.hold.Store(int64(time.Hour))
		r.inject(d.Serial, "vanish")
		time.Sleep(5 * time.Second)
		if !r.mgr.Snapshot().Complete {
			r.Error("a listing that takes 5 s makes the list incomplete")
		}
		time.Sleep(10 * time.Minute)
		if s := r.mgr.Snapshot(); s.Complete || !strings.Contains(strings.Join(s.Problems, "; "), "has been running since") {
			r.Errorf("the listing hangs: complete %v, problems %q, and the pulled drive is %v and %v", s.Complete, s.Problems, r.drive(d.ID).Status, r.drive(d.ID).Health)
		}
		time.Sleep(time.Hour)
		if s := r.mgr.Snapshot(); !s.Complete || r.drive(d.ID).Status != drivebay.StatusOffline {
			r.Errorf("the listing ended: complete %v, the pulled drive is %v", s.Complete, r.drive(d.ID).Status)
		}
	})
}

// TestStuckManagerIsNotReady: a manager whose loop hangs in the kernel shows its last snapshot, which says nothing of today: it
// is not ready.
func TestStuckManagerIsNotReady(t *testing.T) {
	slow := &slowSysfs{}
	as := func(m *hostsim.Machine) host.Machine { slow.Machine = m; return slow }
	onSeen(t, hostsim.Generate(24), nil, drivemgr.Options{}, as, func(r *rig) {
		if why := r.mgr.Unready(); len(why) > 0 {
			r.Errorf("at the start: %q", why)
		}
		d := *r.pick(drivebay.ProtocolATA, 0)
		slow.last = d.Name
		slow.hold.Store(int64(time.Hour))
		time.Sleep(10 * time.Minute)
		if s := r.mgr.Snapshot(); time.Since(s.At) < 9*time.Minute {
			r.Fatal("the loop does not hang")
		}
		if why := strings.Join(r.mgr.Unready(), ""); !strings.Contains(why, "has not looked at the drives since 2000-01-01T00:00") {
			r.Errorf("the loop hangs: %q, and the drive is %v", why, r.drive(d.ID).Health)
		}
		time.Sleep(time.Hour)
		if why := r.mgr.Unready(); len(why) > 0 {
			r.Errorf("the loop goes on: %q", why)
		}
	})
}
