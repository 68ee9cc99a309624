package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
	"github.com/drivebay/drivebay/lvm"
)

// lvmIndex is the newest report of LVM, with the drives that it covers. It is replaced, never changed.
type lvmIndex struct {
	at        time.Time
	key       string            // of the drives that it was made for
	pvs       map[string]string // drive id -> device of its physical volume
	report    *lvm.Report
	suspended map[string]bool   // "group/volume" that the report before had suspended
	unread    map[string]string // drive id -> why LVM could make no report of its physical volume
}

// reportEvery is how old a report may become while nothing seems to change: no event shows how full a pool
// is or how far a mirror is copied.
const reportEvery = 30 * time.Second

// reportLate is how old a report may become before its content counts as unknown: three reports could not
// be made.
const reportLate = 3*reportEvery + reportTime

// readLVMReport makes a report when the drives have changed, or the last one is old. A drive that does not
// answer is left out: LVM counts it as missing until it does.
func (e *Engine) readLVMReport(ctx context.Context, s *drivebay.Snapshot) error {
	for range 3 { // work during a report makes it unreliable
		e.mu.Lock()
		pvs, key := e.pvsOf(s)
		last := e.index.lvm
		before := e.lvmChanges.Load()
		e.mu.Unlock()
		now := e.machine.Now()
		if last != nil && last.key == key && now.Sub(last.at) < reportEvery || last == nil && len(pvs) == 0 || !e.hasLVM() {
			return nil
		}
		r, unread, err := e.readLVM(ctx, pvs, last.spoiling())
		if err != nil {
			e.mu.Lock()
			e.index.lvmError = err.Error()
			e.mu.Unlock()
			return fmt.Errorf("logical volumes: %w", err)
		}
		maps.DeleteFunc(pvs, func(id, _ string) bool { return unread[id] != "" })
		next := &lvmIndex{at: now, key: key, pvs: pvs, report: r, suspended: last.nowSuspended(), unread: unread}
		e.mu.Lock()
		_, after := e.pvsOf(s)
		quiet := e.lvmChanges.Load() == before && after == key
		if quiet {
			e.index.lvm, e.index.lvmError = next, ""
		}
		e.mu.Unlock()
		if quiet {
			break
		}
	}
	return nil
}

// pvsOf returns our physical volumes on drives that answer. Engine.mu is held.
func (e *Engine) pvsOf(s *drivebay.Snapshot) (pvs map[string]string, key string) {
	pvs = map[string]string{}
	var b strings.Builder
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.Status != drivebay.StatusOnline || d.Kernel != nil && d.Kernel.LaneStuck > 0 || foreignCopy(d) {
			continue
		}
		if p, ok := pvOn(e.index.parts[d.ID]); ok {
			pvs[d.ID] = p.dev
			fmt.Fprintln(&b, d.ID, p.dev, p.num, p.start, p.size)
		}
	}
	return pvs, b.String()
}

func pvOn(parts []part) (part, bool) {
	if i := slices.IndexFunc(parts, func(p part) bool { return strings.HasPrefix(p.title, pvPrefix) }); i >= 0 {
		return parts[i], true
	}
	return part{}, false
}

func (x *lvmIndex) nowSuspended() map[string]bool {
	out := map[string]bool{}
	if x != nil {
		for _, g := range x.report.Groups {
			for _, lv := range g.LVs {
				if lv.Suspended {
					out[g.Name+"/"+lv.Name] = true
				}
			}
		}
	}
	return out
}

// group returns our group of a name, or nil.
func (x *lvmIndex) group(name string) *lvm.Group {
	if x == nil {
		return nil
	}
	if g := x.report.Group(name); g != nil && slices.Contains(g.Tags, lvm.Tag) {
		return g
	}
	return nil
}

// reported returns the report; an empty one before the first.
func (x *lvmIndex) reported() *lvm.Report {
	if x == nil {
		return &lvm.Report{}
	}
	return x.report
}

// lacks reports whether the report covers all of a volume's drives, LVM could read each of them, and no
// such volume is there. A damaged label or text hides a volume, it does not remove it.
func (x *lvmIndex) lacks(l drivebay.Location) bool {
	if x == nil {
		return false
	}
	for _, id := range l.Drives {
		if x.pvs[id] == "" || x.unreadable(id) != "" {
			return false
		}
	}
	return lvOf(x.report, l) == nil
}

// spoiling returns the drives that no report could be made of.
func (x *lvmIndex) spoiling() map[string]string {
	if x == nil {
		return nil
	}
	return x.unread
}

// unreadable returns what keeps LVM from reading the physical volume of a drive; "" if LVM has read it, or
// the report does not cover it.
func (x *lvmIndex) unreadable(drive string) string {
	if x == nil {
		return ""
	}
	if why := x.unread[drive]; why != "" {
		return "its report of the drive fails: " + why
	}
	dev := x.pvs[drive]
	if dev == "" {
		return ""
	}
	switch pv, g := x.report.On(dev); {
	case pv == nil:
		return "it finds no physical volume in the partition that holds one: the label is damaged or cannot be read, or another drive has the same"
	case pv.Unreadable(g):
		return "it cannot read the metadata of the volume group there"
	}
	return ""
}

// withoutCopy reports whether LVM knows a drive's group from its other drives only.
func (x *lvmIndex) withoutCopy(drive string) bool {
	if x == nil || x.pvs[drive] == "" {
		return false
	}
	pv, g := x.report.On(x.pvs[drive])
	return pv != nil && g != nil && pv.NoMetadata
}

// merge replaces one group by that of a newer report.
func (x *lvmIndex) merge(l drivebay.Location, r *lvm.Report, parts map[string][]part) *lvmIndex {
	next := &lvmIndex{report: &lvm.Report{}, pvs: map[string]string{}}
	if x != nil {
		*next = *x
		next.pvs, next.report = maps.Clone(x.pvs), &lvm.Report{Free: x.report.Free}
		for _, g := range x.report.Groups {
			if g.Name != l.VG {
				next.report.Groups = append(next.report.Groups, g)
			}
		}
	}
	if g := r.Group(l.VG); g != nil {
		next.report.Groups = append(next.report.Groups, *g)
		next.unread = maps.Clone(next.unread)
		maps.DeleteFunc(next.unread, func(id, _ string) bool { return slices.Contains(l.Drives, id) })
	}
	for _, id := range l.Drives {
		if p, ok := pvOn(parts[id]); ok {
			next.pvs[id] = p.dev
		}
	}
	return next
}

// lvmActivate runs a plan for the group of a location, and records the report at its end. Its direct
// callers make devices appear or disappear, and change nothing that is written on a drive: lvmRun is for
// changes.
func (e *Engine) lvmActivate(ctx context.Context, l drivebay.Location, steps []lvm.Step) error {
	if err := e.trusted(l.Drives); err != nil {
		return err
	}
	devices, err := e.lvmDevices(l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	_, err = lane.Through(ctx, e.lanes.of("vg "+l.VG), e.machine, func(ctx context.Context) (struct{}, error) {
		r, err := e.lvm.Run(ctx, l.VG, devices, steps)
		e.learnOf(l, devices, r, err) // before the next plan in the lane runs
		return struct{}{}, err
	})
	if err != nil { // the plan may end after this call
		e.learnOf(l, devices, nil, err)
	}
	return inOurWords(ourError(err))
}

// learnOf records the state of a group after a plan; a plan that failed may have done some of its steps.
func (e *Engine) learnOf(l drivebay.Location, devices []string, r *lvm.Report, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lvmChanges.Add(1)
	e.reports.Delete(l.VG)
	if r != nil {
		e.index.lvm = e.index.lvm.merge(l, r, e.index.parts)
	}
	if err == nil {
		e.reportedNow(l, devices, r)
	}
}

// lvmDevices returns the partitions of a location's physical volumes.
func (e *Engine) lvmDevices(l drivebay.Location) ([]string, error) {
	if e.lvm == nil {
		return nil, fmt.Errorf("volume group %s: %w: this machine has no LVM", l.VG, drivebay.ErrNoSupport)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, id := range l.Drives {
		if p, ok := pvOn(e.index.parts[id]); ok {
			out = append(out, p.dev)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("volume group %s: %w", l.VG, errNoPV)
	}
	return out, nil
}

// ourError maps LVM's errors for a lack of space and an existing name to ours.
func ourError(err error) error {
	switch {
	case errors.Is(err, lvm.ErrNoSpace):
		return fmt.Errorf("%w: %w", drivebay.ErrNoSpace, err)
	case errors.Is(err, lvm.ErrExists):
		return fmt.Errorf("%w: %w", drivebay.ErrExists, err)
	}
	return err
}
