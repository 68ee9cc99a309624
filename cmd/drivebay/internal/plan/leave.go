// Package plan says what a command about the removal of a drive, or about a volume, would do. It decides
// by the facts that the daemon reports and by the tables of the dictionary, as the daemon does.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// Plan is what a command would do. A dry run prints it and ends with exit status 0, also where the
// command itself would be refused.
type Plan struct {
	steps   []string
	refused error
	note    string
}

func (p *Plan) add(format string, args ...any) {
	p.steps = append(p.steps, fmt.Sprintf(format, args...))
}

// Text is the plan for people, below a line that begins with head.
func (p *Plan) Text(head string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: dry run, nothing is changed\n", head)
	if p.refused != nil {
		fmt.Fprintf(&b, "  would be refused now: %s\n", render.Clean(p.refused.Error()))
	}
	for _, s := range p.steps {
		fmt.Fprintf(&b, "  would: %s\n", render.Clean(s))
	}
	if p.note != "" {
		fmt.Fprintf(&b, "  note: %s\n", p.note)
	}
	return b.String()
}

// Facts are what the daemon reports, by which a plan is made.
type Facts struct {
	Drives  *drivebay.Snapshot
	Volumes *drivebay.VolumeSet // empty if the daemon makes no volumes

	// Room asks the daemon whether a volume has room: only the daemon knows the free space in one piece.
	Room func(volume string, q drivebay.RoomQuery) (drivebay.VolumeRoom, error)
}

// Leave returns what a command about the removal of a drive would do. The table of usages decides
// here as it does in the daemon.
func (f Facts) Leave(d *drivebay.Drive, do drivebay.LeaveVerb) *Plan {
	p := new(Plan)
	switch do {
	case drivebay.LeaveRelease:
		_, p.refused = d.Usage.Next(drivebay.UsageRelease)
		f.planRelease(p, d)
	case drivebay.LeaveApprove:
		_, p.refused = d.Usage.Next(drivebay.UsageApprove)
		f.planRemoval(p, d)
	case drivebay.LeaveForce:
		_, p.refused = d.Usage.Next(drivebay.UsageForce)
		lost, err := f.Lost(d)
		if p.refused == nil {
			p.refused = err
		}
		for _, l := range lost {
			p.add("lose %s for good", l.String())
		}
		f.planRemoval(p, d)
	case drivebay.LeaveForget:
		p.refused = f.needed(d)
		p.add("delete the record of the drive, its events stay")
	case drivebay.LeaveCancel:
		_, p.refused = d.Usage.Next(drivebay.UsageKeep)
		p.add("keep the drive in use; volumes that have moved stay where they are")
	case drivebay.LeaveRetry:
		_, p.refused = d.Usage.Next(drivebay.UsageRetry)
		p.add("try the failed step of the removal again")
	case drivebay.LeaveAccept:
		_, p.refused = d.Usage.Next(drivebay.UsageSeen)
		p.add("use the drive again")
	}
	if d.System && (do == drivebay.LeaveRelease || do == drivebay.LeaveApprove || do == drivebay.LeaveForce) {
		p.refused = fmt.Errorf("drive %s (%s): %w: the machine runs from this drive", d.ID, d.Name, drivebay.ErrRefused)
	}
	return p
}

// needed returns why the record of a drive cannot be deleted.
func (f Facts) needed(d *drivebay.Drive) error {
	if d.Status != drivebay.StatusOffline {
		return fmt.Errorf("drive %s (%s): %w: the drive is %v; only the record of a drive that is OFFLINE can be deleted", d.ID, d.Name, drivebay.ErrRefused, d.Status)
	}
	for _, v := range f.Volumes.Volumes {
		if slices.Contains(v.Location.Drives, d.ID) {
			return fmt.Errorf("drive %s: %w: the record of %s names it", d.ID, drivebay.ErrRefused, render.CalledVolume(&v.Volume))
		}
	}
	for _, s := range f.Volumes.Snapshots {
		if slices.Contains(s.Location.Drives, d.ID) {
			return fmt.Errorf("drive %s: %w: the record of snapshot %s (%s) names it", d.ID, drivebay.ErrRefused, s.ID, s.Name)
		}
	}
	return nil
}

// planRelease adds what the release of a drive does to the volumes on it.
func (f Facts) planRelease(p *Plan, d *drivebay.Drive) {
	p.add("place no new volumes on the drive")
	for _, v := range f.Volumes.Volumes {
		if slices.Contains(v.Location.Drives, d.ID) {
			p.add("%s", f.leaves(v, d))
		}
	}
	for _, s := range f.Volumes.Snapshots {
		if slices.Contains(s.Location.Drives, d.ID) {
			p.add("move snapshot %s (%s) with its thin pool", s.ID, s.Name)
		}
	}
	if len(p.steps) > 2 {
		p.note = "the room on other drives was checked for each volume alone, as it is now"
	}
	if len(p.steps) == 1 {
		p.add("find nothing that depends on the drive: it becomes RELEASED at once")
	}
}

// leaves describes how a volume leaves a drive, and to which one.
func (f Facts) leaves(v *drivebay.VolumeView, d *drivebay.Drive) string {
	name := fmt.Sprintf("%s of %s", render.CalledVolume(&v.Volume), render.Binary(v.Size))
	room, err := f.Room(v.ID, drivebay.RoomQuery{Leave: d.ID})
	if err != nil {
		return fmt.Sprintf("move %s; whether another drive has room for it is not known: %v", name, err)
	}
	to := "another drive"
	if room.Target != "" {
		to = "drive " + f.on(drivebay.Location{Drives: []string{room.Target}})
	}
	switch {
	case room.Against != "":
		return fmt.Sprintf("wait for %s, which cannot move now: %s", name, room.Against)
	case v.Location.Mirrored():
		return fmt.Sprintf("give %s a new leg on %s; it stays in use", name, to)
	case v.Location.OnLVM():
		return fmt.Sprintf("move %s to %s; it stays in use", name, to)
	case len(v.Publications) > 0:
		return fmt.Sprintf("wait until %s is not in use (it is at %s), then copy it to %s", name, v.Publications[0].Path, to)
	default:
		return fmt.Sprintf("copy %s to %s; it cannot be used meanwhile", name, to)
	}
}

// planRemoval adds what the removal of a drive does.
func (f Facts) planRemoval(p *Plan, d *drivebay.Drive) {
	for _, u := range d.Uses {
		if !u.Ours && p.refused == nil {
			p.refused = fmt.Errorf("drive %s (%s): %w: the drive is in use: %s", d.ID, d.Name, drivebay.ErrBusy, strings.TrimSpace(u.Kind+" "+u.Device+" "+u.What))
		}
	}
	if d.Status == drivebay.StatusOnline {
		p.add("have the kernel remove the drive, and switch on the light of its bay: %s", f.Drives.Where(d))
		return
	}
	p.add("record that the drive is removed; it is absent already: %s", f.Drives.Where(d))
}

// Replacement returns what `drivebay replace` would do from the present usage of a drive on.
func (f Facts) Replacement(d *drivebay.Drive) *Plan {
	p := new(Plan)
	switch d.Usage {
	case drivebay.UsageInUse, drivebay.UsageReleasing:
		if p = f.Leave(d, drivebay.LeaveRelease); d.Usage == drivebay.UsageReleasing && !d.System {
			p.refused = nil // the replacement continues with it
		}
	case drivebay.UsageFailed:
		p = f.Leave(d, drivebay.LeaveRetry)
	}
	if d.Usage != drivebay.UsageRemoved && d.Usage != drivebay.UsageRemoving {
		f.planRemoval(p, d)
	}
	if d.Slot.Bay == "" {
		p.add("end there: the machine reports no bay for the drive, so no successor can be recognized")
		return p
	}
	p.add("wait until the drive is pulled and a new one is in bay %s, which inherits the claim", d.Slot.Bay)
	return p
}
