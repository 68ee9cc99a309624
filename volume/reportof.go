package volume

import (
	"context"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// reportAge is how long a report is reused. Only the engine changes its groups. Each
// change stores the newest report here, and reads another one before its first command
// (lvm.System.Run).
const reportAge = 5 * time.Second

// reported is the last LVM report of a group.
type reported struct {
	at      time.Time
	devices string
	report  *lvm.Report
}

// reportOf returns an LVM report of the drives of a location, and of no others.
func (e *Engine) reportOf(ctx context.Context, l drivebay.Location) (*lvm.Report, error) {
	devices, err := e.lvmDevices(l)
	if err != nil {
		return nil, err
	}
	if r, ok := e.lately(l, devices); ok {
		return r, nil
	}
	works := e.lvmChanges.Load()
	r, err := through(ctx, e, "vg "+l.VG, reportTime, func(ctx context.Context) (*lvm.Report, error) { return e.lvm.Read(ctx, devices) })
	if err == nil {
		e.mu.Lock() // a change of the group drops its report with the lock held
		defer e.mu.Unlock()
		if works == e.lvmChanges.Load() {
			e.reportedNow(l, devices, r)
		}
	}
	return r, err
}

// lately returns the last report of a group if it is newer than reportAge.
func (e *Engine) lately(l drivebay.Location, devices []string) (*lvm.Report, bool) {
	last, ok := e.reports.Load(l.VG)
	if !ok {
		return nil, false
	}
	is := last.(reported)
	age := e.machine.Now().Sub(is.at)
	return is.report, age >= 0 && age < reportAge && is.devices == strings.Join(devices, " ")
}

// activeLately reports whether the last report, if it is new enough, shows a logical volume as active.
func (e *Engine) activeLately(l drivebay.Location) bool {
	devices, err := e.lvmDevices(l)
	if err != nil {
		return false
	}
	r, ok := e.lately(l, devices)
	if !ok {
		return false
	}
	lv := lvOf(r, l)
	return lv != nil && lv.Active && !lv.Suspended
}

// reportedNow stores a report for the next calls of reportOf.
func (e *Engine) reportedNow(l drivebay.Location, devices []string, r *lvm.Report) {
	if r == nil || r.Group(l.VG) == nil {
		e.reports.Delete(l.VG)
		return
	}
	e.reports.Store(l.VG, reported{e.machine.Now(), strings.Join(devices, " "), r})
}
