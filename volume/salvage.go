package volume

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
)

// When an operator gives up a drive in the middle of a move, what was on it is lost. What
// was on the other drive stays in use without it.

// salvage removes the lost one of a moving group's two drives from the group.
func (e *Engine) salvage(ctx context.Context, h *volumeGroup, head direction) error {
	return e.withIdleGroup(h.VG, func(h *volumeGroup) error {
		rest := h.Location
		rest.Drives = []string{head.to}
		r, err := e.reportOf(ctx, rest)
		switch {
		case errors.Is(err, errNoPV) || err == nil && r.Group(h.VG) == nil:
			if err := e.unlabelled(ctx, head.to); err != nil {
				return err
			}
			r = &lvm.Report{}
		case err != nil:
			return err
		default:
			if err := e.leavesLost(h, r, r.Group(h.VG), strings.Join(r.Group(h.VG).Missing(), ", ")); err != nil {
				return err
			}
			if r, err = e.salvageGroup(ctx, rest, head.from, r.Group(h.VG)); err != nil {
				return err
			}
			if err := e.opt.After(h.VG, "salvage"); err != nil {
				return fmt.Errorf("%w: %w", errStopped, err)
			}
			if err := e.wipeRemains(ctx, h.Location, head.to); err != nil {
				return err
			}
		}
		whole := func(l drivebay.Location) bool { return r.LV(h.VG, l.LV) != nil }
		if !slices.ContainsFunc(h.volumes, func(r *drivebay.VolumeRecord) bool { return whole(r.Volume.Location) }) &&
			!slices.ContainsFunc(h.snaps, func(r *drivebay.SnapshotRecord) bool { return whole(r.Snapshot.Location) }) {
			if err := e.run(ctx, h.VG, e.discardGroup(rest)); err != nil {
				return err
			}
		}
		if err := e.wipeRemains(ctx, h.Location, head.from); err != nil { // the drive is gone: an event reports that
			return err
		}
		return e.part(h, head, whole)
	})
}

// salvageGroup removes the lost physical volume from LVM's group, after the lost logical volumes.
func (e *Engine) salvageGroup(ctx context.Context, rest drivebay.Location, gone string, g *lvm.Group) (*lvm.Report, error) {
	if err := e.cancelUnstartedMove(ctx, rest.VG, theMove); err != nil {
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
	if err := e.lvmActivate(ctx, rest, append(plan, pools...)); err != nil {
		return nil, err
	}
	devices, err := e.lvmDevices(rest)
	if err == nil {
		err = e.mayWrite(rest.Drives...)
	}
	if err != nil {
		return nil, err
	}
	return lane.Through(ctx, e.lanes.of("vg "+rest.VG), e.machine, func(ctx context.Context) (*lvm.Report, error) {
		r, err := e.lvm.Salvage(ctx, rest.VG, devices, pv)
		e.learnOf(rest, devices, r, err)
		return r, inOurWords(ourError(err))
	})
}

// unlabelled proves that a drive has no LVM label, by what is written there. That LVM or
// the kernel shows none proves nothing: partitions vanish for moments.
func (e *Engine) unlabelled(ctx context.Context, drive string) error {
	return e.withTable(ctx, drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
		p, there := entry{kind: typePV}.find(t)
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
func (e *Engine) discardGroup(rest drivebay.Location) []step {
	plan := []step{{
		name: "group",
		done: func(ctx context.Context) (bool, error) {
			err := e.unlabelled(ctx, rest.Drives[0])
			if errors.Is(err, drivebay.ErrPending) {
				return false, nil
			}
			return err == nil, err
		},
		do: func(ctx context.Context) error {
			r, err := e.reportOf(ctx, rest)
			if err != nil {
				return err
			}
			return e.lvmWithoutLost(ctx, rest, lvm.RemoveGroup(rest.VG, e.labels(r, rest)...))
		},
	}}
	id := rest.Drives[0]
	return append(plan, e.dropEntry(entry{drive: id, name: "physical volume of " + id, kind: typePV})...)
}

// part records where each volume and snapshot of a group is: on the drive that went, or on
// the one that is here.
func (e *Engine) part(h *volumeGroup, head direction, whole func(drivebay.Location) bool) error {
	e.placing.Lock()
	defer e.placing.Unlock()
	at := func(l drivebay.Location) []string {
		if whole(l) {
			return []string{head.to}
		}
		return []string{head.from}
	}
	moved := head.to != h.Drives[0]
	var errs []error
	for _, r := range h.volumes {
		rec, err := e.change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			v := &r.Volume
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
			e.note(drivebay.EventVolumeFailed, v, fmt.Sprintf("volume %q was on drive %s when that was given up: it is lost", v.Name, head.from))
		case moved:
			e.note(drivebay.EventVolumeMoved, v, fmt.Sprintf("volume %q had moved to drive %s when drive %s was given up", v.Name, head.to, head.from))
		}
	}
	for _, r := range h.snaps {
		next := *r
		next.Snapshot.Location.Drives = at(next.Snapshot.Location)
		errs = append(errs, e.putSnapshot(next))
	}
	return errors.Join(errs...)
}
