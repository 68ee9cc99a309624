package evacuate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// When an operator gives up a drive in the middle of a move, what was on it is lost. What
// was on the other drive stays in use without it.

// salvage removes the lost one of a moving group's two drives from the group.
func (e *Evacuator) salvage(ctx context.Context, h *groups.VolumeGroup, head groups.Direction) error {
	return e.withIdleGroup(h.VG, func(h *groups.VolumeGroup) error {
		rest := h.Location
		rest.Drives = []string{head.To}
		r, err := e.Groups.ReportOf(ctx, rest)
		switch {
		case errors.Is(err, groups.ErrNoPV) || err == nil && r.Group(h.VG) == nil:
			if !hadNothing(h, head.To) { // the label may be erased, with the data behind it
				return fmt.Errorf("drive %s: %w: LVM does not show volume group %s there, so it is not known what has moved to it: restore the label of its physical volume, or give up the volumes of the group with `drivebay volume forget`", head.To, drivebay.ErrPending, h.VG)
			}
			if err := e.Unlabelled(ctx, head.To); err != nil {
				return err
			}
			r = &lvm.Report{}
		case err != nil:
			return err
		default:
			if err := e.Erase.LeavesLost(h, r, r.Group(h.VG), strings.Join(r.Group(h.VG).Missing(), ", ")); err != nil {
				return err
			}
			if r, err = e.salvageGroup(ctx, rest, head.From, r.Group(h.VG)); err != nil {
				return err
			}
			if err := e.Opt.After(h.VG, "salvage"); err != nil {
				return fmt.Errorf("%w: %w", ledger.ErrStopped, err)
			}
			if err := e.Erase.WipeRemains(ctx, h.Location, head.To); err != nil {
				return err
			}
		}
		whole := func(l drivebay.Location) bool { return r.LV(h.VG, l.LV) != nil }
		if !slices.ContainsFunc(h.Volumes, func(r *drivebay.VolumeRecord) bool { return whole(r.Volume.Location) }) &&
			!slices.ContainsFunc(h.Snaps, func(r *drivebay.SnapshotRecord) bool { return whole(r.Snapshot.Location) }) {
			if err := e.hasNothing(h, head.To); err != nil {
				return err
			}
			if err := e.Steps.Run(ctx, h.VG, e.discardGroup(rest)); err != nil {
				return err
			}
		}
		if err := e.Erase.WipeRemains(ctx, h.Location, head.From); err != nil { // the drive is gone: an event reports that
			return err
		}
		return e.part(h, head, whole)
	})
}

// hasNothing records that a drive has nothing of a group, before its label goes: after an interruption, a label that is not there
// says nothing.
func (e *Evacuator) hasNothing(h *groups.VolumeGroup, drive string) error {
	var errs []error
	for _, r := range h.Volumes {
		_, err := e.Ledger.Change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			r.NoneOn = drive
			return nil
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hadNothing reports whether that was recorded.
func hadNothing(h *groups.VolumeGroup, drive string) bool {
	return len(h.Volumes) > 0 && !slices.ContainsFunc(h.Volumes, func(r *drivebay.VolumeRecord) bool { return r.NoneOn != drive })
}

// salvageGroup removes the lost physical volume from LVM's group, after the lost logical volumes.
func (e *Evacuator) salvageGroup(ctx context.Context, rest drivebay.Location, gone string, g *lvm.Group) (*lvm.Report, error) {
	if err := e.cancelUnstartedMove(ctx, rest.VG, device.TheMove); err != nil {
		return nil, err
	}
	pv := strings.Join(g.Missing(), ", ") // one at most: the group had two
	var plan, pools []lvm.Step
	for _, name := range g.LostWith(pv) {
		switch lv := g.LV(name); {
		case lv.Parent != "":
		case lv.Type == "thin-pool": // after its volumes
			pools = append(pools, lvm.Deactivate(g.Name, name)...)
		case lv.Open:
			return nil, fmt.Errorf("%w: logical volume %s was on drive %s, and is still open: unmount it", drivebay.ErrPending, name, gone)
		default:
			plan = append(plan, lvm.Deactivate(g.Name, name)...)
		}
	}
	if err := e.Groups.LVMActivate(ctx, rest, append(plan, pools...)); err != nil {
		return nil, err
	}
	devices, err := e.Groups.LVMDevices(rest)
	if err == nil {
		err = e.Device.MayWrite(rest.Drives...)
	}
	if err != nil {
		return nil, err
	}
	return lane.Through(ctx, e.Steps.Lanes.Of("vg "+rest.VG), e.Machine, func(ctx context.Context) (*lvm.Report, error) {
		r, err := e.LVM.Salvage(ctx, rest.VG, devices, pv)
		e.Groups.LearnOf(rest, devices, r, err)
		return r, steps.InOurWords(groups.OurError(err))
	})
}

// Unlabelled proves that a drive has no LVM label, by what is written there. That LVM or
// the kernel shows none proves nothing: partitions vanish for moments.
func (e *Evacuator) Unlabelled(ctx context.Context, drive string) error {
	return e.Write.WithTable(ctx, drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
		p, there := write.Entry{Kind: ledger.TypePV}.Find(t)
		if !there {
			return nil
		}
		c := content.Detect(io.NewSectionReader(disk, int64(p.Start), int64(p.Size)), p.Size, disk.BlockSize())
		switch {
		case slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool { return s.Format == "LVM2_member" }):
			return fmt.Errorf("drive %s: %w: its physical volume is there, and LVM does not show what is on it", drive, drivebay.ErrPending)
		case c.Reason != "":
			return fmt.Errorf("drive %s: %w: what is written on its physical volume cannot be read: %s", drive, drivebay.ErrRefused, c.Reason)
		}
		return nil
	})
}

// discardGroup plans to remove the group from a drive to which nothing has moved in time.
func (e *Evacuator) discardGroup(rest drivebay.Location) []steps.Step {
	plan := []steps.Step{{
		Name: "group",
		Done: func(ctx context.Context) (bool, error) {
			err := e.Unlabelled(ctx, rest.Drives[0])
			if errors.Is(err, drivebay.ErrPending) {
				return false, nil
			}
			return err == nil, err
		},
		Do: func(ctx context.Context) error {
			r, err := e.Groups.ReportOf(ctx, rest)
			if err != nil {
				return err
			}
			return e.Device.LVMWithoutLost(ctx, rest, lvm.RemoveGroup(rest.VG, e.Write.Labels(r, rest)...))
		},
	}}
	id := rest.Drives[0]
	return append(plan, e.Write.DropEntry(write.Entry{Drive: id, Name: "physical volume of " + id, Kind: ledger.TypePV})...)
}

// part records where each volume and snapshot of a group is: on the drive that went, or on
// the one that is here.
func (e *Evacuator) part(h *groups.VolumeGroup, head groups.Direction, whole func(drivebay.Location) bool) error {
	e.Provision.Placing.Lock()
	defer e.Provision.Placing.Unlock()
	at := func(l drivebay.Location) []string {
		if whole(l) {
			return []string{head.To}
		}
		return []string{head.From}
	}
	moved := head.To != h.Drives[0]
	var errs []error
	for _, r := range h.Volumes {
		rec, err := e.Ledger.Change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			v := &r.Volume
			r.NoneOn = ""
			if v.Location.Drives = at(v.Location); moved && whole(v.Location) {
				if next, err := v.UsageMoved(drivebay.VolumeUsageMoved); err == nil {
					*v = next
				}
			}
			return nil
		})
		if errs = append(errs, err); err != nil {
			continue
		}
		switch v := &rec.Volume; {
		case !whole(v.Location):
			e.Ledger.Note(drivebay.EventVolumeFailed, v, fmt.Sprintf("volume %q was on drive %s when that was given up: it is lost", v.Name, head.From))
		case moved:
			e.Ledger.Note(drivebay.EventVolumeMoved, v, fmt.Sprintf("volume %q had moved to drive %s when drive %s was given up", v.Name, head.To, head.From))
		}
	}
	for _, r := range h.Snaps {
		next := *r
		next.Snapshot.Location.Drives = at(next.Snapshot.Location)
		errs = append(errs, e.Snapshots.PutSnapshot(next))
	}
	return errors.Join(errs...)
}
