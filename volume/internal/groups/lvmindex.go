package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

var ErrNoPV = fmt.Errorf("no physical volume of ours: %w", drivebay.ErrNotFound)

// ReadLVMReport makes a report when the drives have changed, or to renew the last one. A drive that does not
// answer is left out: LVM counts it as missing until it does.
func (e *Groups) ReadLVMReport(ctx context.Context, s *drivebay.Snapshot, renew bool) error {
	for range 3 { // work during a report makes it unreliable
		e.Ledger.Mu.Lock()
		pvs, key := e.pvsOf(s)
		last := e.Partitions.Index.LVM
		before := e.LVMChanges.Load()
		e.Ledger.Mu.Unlock()
		now := e.Machine.Now()
		if last != nil && last.Key == key && !renew || last == nil && len(pvs) == 0 {
			return nil
		}
		if lacks := e.Capabilities.LacksLVM(); lacks != nil { // a machine without LVM still lists its partitions
			e.noReport(lacks)
			return nil
		}
		r, unread, err := e.readLVM(ctx, pvs, last.Spoiling())
		if err != nil {
			e.noReport(err)
			return fmt.Errorf("logical volumes: %w", err)
		}
		maps.DeleteFunc(pvs, func(id, _ string) bool { return unread[id] != "" })
		next := &partitions.LVMIndex{At: now, Key: key, PVs: pvs, Report: r, Suspended: last.NowSuspended(), Unread: unread}
		e.Ledger.Mu.Lock()
		_, after := e.pvsOf(s)
		quiet := e.LVMChanges.Load() == before && after == key
		if quiet {
			e.Partitions.Index.LVM, e.Partitions.Index.LVMError = next, ""
		}
		e.Ledger.Mu.Unlock()
		if quiet {
			break
		}
	}
	return nil
}

// noReport notes why there is no new report: what is known of logical volumes becomes old.
func (e *Groups) noReport(why error) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	e.Partitions.Index.LVMError = why.Error()
}

// pvsOf returns our physical volumes on drives that answer. Ledger.Mu is held.
func (e *Groups) pvsOf(s *drivebay.Snapshot) (pvs map[string]string, key string) {
	pvs = map[string]string{}
	var b strings.Builder
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.Status != drivebay.StatusOnline || d.Kernel != nil && d.Kernel.LaneStuck > 0 || partitions.ForeignCopy(d) {
			continue
		}
		if p, ok := partitions.PVOn(e.Partitions.Index.Parts[d.ID]); ok {
			pvs[d.ID] = p.Dev
			fmt.Fprintln(&b, d.ID, p.Dev, p.Num, p.Start, p.Size)
		}
	}
	return pvs, b.String()
}

// LVMActivate runs a plan for the group of a location, and records the report at its end. Its direct
// callers make devices appear or disappear, and change nothing that is written on a drive: LVMRun is for
// changes.
func (e *Groups) LVMActivate(ctx context.Context, l drivebay.Location, plan []lvm.Step) error {
	if err := e.Partitions.Trusted(l.Drives); err != nil {
		return err
	}
	devices, err := e.LVMDevices(l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, steps.ProgramTime)
	defer cancel()
	_, err = lane.Through(ctx, e.Steps.Lanes.Of("vg "+l.VG), e.Machine, func(ctx context.Context) (struct{}, error) {
		r, err := e.LVM.Run(ctx, l.VG, devices, plan)
		e.LearnOf(l, devices, r, err) // before the next plan in the lane runs
		return struct{}{}, err
	})
	if err != nil { // the plan may end after this call
		e.LearnOf(l, devices, nil, err)
	}
	return steps.InOurWords(OurError(err))
}

// LearnOf records the state of a group after a plan; a plan that failed may have done some of its steps.
func (e *Groups) LearnOf(l drivebay.Location, devices []string, r *lvm.Report, err error) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	e.LVMChanges.Add(1)
	e.Reports.Delete(l.VG)
	if r != nil {
		e.Partitions.Index.LVM = e.Partitions.Index.LVM.Merge(l, r, e.Partitions.Index.Parts)
	}
	if err == nil {
		e.reportedNow(l, devices, r)
	}
}

// LVMDevices returns the partitions of a location's physical volumes.
func (e *Groups) LVMDevices(l drivebay.Location) ([]string, error) {
	if e.LVM == nil {
		return nil, fmt.Errorf("volume group %s: %w: this machine has no LVM", l.VG, drivebay.ErrNoSupport)
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	var out []string
	for _, id := range l.Drives {
		if p, ok := partitions.PVOn(e.Partitions.Index.Parts[id]); ok {
			out = append(out, p.Dev)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("volume group %s: %w", l.VG, ErrNoPV)
	}
	return out, nil
}

// OurError maps LVM's errors for a lack of space and an existing name to ours.
func OurError(err error) error {
	switch {
	case errors.Is(err, lvm.ErrNoSpace):
		return fmt.Errorf("%w: %w", drivebay.ErrNoSpace, err)
	case errors.Is(err, lvm.ErrExists):
		return fmt.Errorf("%w: %w", drivebay.ErrExists, err)
	}
	return err
}
