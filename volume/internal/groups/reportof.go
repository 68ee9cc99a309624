package groups

import (
	"context"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// reportAge is how long a report is reused. Only the engine changes its groups. Each
// change stores the newest report here, and reads another one before its first command
// (lvm.System.Run). LVM may see less by then: a plan that needs all parts of a volume has LVM refuse
// it otherwise (lvm.ActivateWhole).
const reportAge = 5 * time.Second

// Reported is the last LVM report of a group.
type Reported struct {
	at      time.Time
	devices string
	Report  *lvm.Report
}

// ReportOf returns an LVM report of the drives of a location, and of no others.
func (e *Groups) ReportOf(ctx context.Context, l drivebay.Location) (*lvm.Report, error) {
	devices, err := e.LVMDevices(l)
	if err != nil {
		return nil, err
	}
	if r, ok := e.lately(l, devices); ok {
		return r, nil
	}
	works := e.LVMChanges.Load()
	r, err := steps.Through(ctx, e.Steps, "vg "+l.VG, partitions.ReportTime, func(ctx context.Context) (*lvm.Report, error) { return e.LVM.Read(ctx, devices) })
	if err == nil {
		e.Ledger.Mu.Lock() // a change of the group drops its report with the lock held
		defer e.Ledger.Mu.Unlock()
		if works == e.LVMChanges.Load() {
			e.reportedNow(l, devices, r)
		}
	}
	return r, err
}

// lately returns the last report of a group if it is newer than reportAge.
func (e *Groups) lately(l drivebay.Location, devices []string) (*lvm.Report, bool) {
	last, ok := e.Reports.Load(l.VG)
	if !ok {
		return nil, false
	}
	is := last.(Reported)
	age := e.Machine.Now().Sub(is.at)
	return is.Report, age >= 0 && age < reportAge && is.devices == strings.Join(devices, " ")
}

// ActiveLately reports whether the last report, if it is new enough, shows a logical volume as active.
func (e *Groups) ActiveLately(l drivebay.Location) bool {
	devices, err := e.LVMDevices(l)
	if err != nil {
		return false
	}
	r, ok := e.lately(l, devices)
	if !ok {
		return false
	}
	lv := partitions.LVOf(r, l)
	return lv != nil && lv.Active && !lv.Suspended
}

// reportedNow stores a report for the next calls of ReportOf.
func (e *Groups) reportedNow(l drivebay.Location, devices []string, r *lvm.Report) {
	if r == nil || r.Group(l.VG) == nil {
		e.Reports.Delete(l.VG)
		return
	}
	e.Reports.Store(l.VG, Reported{e.Machine.Now(), strings.Join(devices, " "), r})
}
