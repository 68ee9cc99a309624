package volume

import (
	"context"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// reportAge is how long one report serves the questions that come after it. Nobody
// but us changes a group of ours, whoever of us changes it leaves the newest
// report here, and takes another one before the first command (lvm.System.Run).
const reportAge = 5 * time.Second

// reported is what LVM said last of a group.
type reported struct {
	at      time.Time
	devices string
	report  *lvm.Report
}

// reportOf asks LVM for what is on the drives of a location, and nothing else.
func (e *Engine) reportOf(ctx context.Context, l drivebay.Location) (*lvm.Report, error) {
	devices, err := e.lvmDevices(l)
	if err != nil {
		return nil, err
	}
	if r, ok := e.lately(l, devices); ok {
		return r, nil
	}
	works := e.works.Load()
	r, err := through(ctx, e, "vg "+l.VG, reportTime, func(ctx context.Context) (*lvm.Report, error) { return e.lvm.Read(ctx, devices) })
	if err == nil {
		e.mu.Lock() // whoever changes the group forgets its report under it
		defer e.mu.Unlock()
		if works == e.works.Load() {
			e.reportedNow(l, devices, r)
		}
	}
	return r, err
}

// lately is the report of a moment ago, if there was one.
func (e *Engine) lately(l drivebay.Location, devices []string) (*lvm.Report, bool) {
	last, ok := e.reports.Load(l.VG)
	if !ok {
		return nil, false
	}
	is := last.(reported)
	age := e.machine.Now().Sub(is.at)
	return is.report, age >= 0 && age < reportAge && is.devices == strings.Join(devices, " ")
}

// activeLately says whether a logical volume was active a moment ago.
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

// reportedNow keeps a report for the next question.
func (e *Engine) reportedNow(l drivebay.Location, devices []string, r *lvm.Report) {
	if r == nil || r.Group(l.VG) == nil {
		e.reports.Delete(l.VG)
		return
	}
	e.reports.Store(l.VG, reported{e.machine.Now(), strings.Join(devices, " "), r})
}
