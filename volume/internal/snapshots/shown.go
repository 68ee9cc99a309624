package snapshots

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// frozenFor is how long requests of a drive wait until its snapshots cannot be used: longer than a disk needs to spin up.
const frozenFor = 30 * time.Second

// ShownNow returns the snapshots that are not still being made as they are shown, by id.
func (e *Snapshotter) ShownNow() []drivebay.VolumeSnapshot {
	var out []drivebay.VolumeSnapshot
	for _, r := range e.Inventory.Partitions.SnapshotRecords() {
		if r.Work == nil || r.Work.Op != drivebay.WorkCreate {
			out = append(out, e.Shown(r.Snapshot))
		}
	}
	slices.SortFunc(out, func(a, b drivebay.VolumeSnapshot) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Shown returns a snapshot as it is shown: with why it cannot be used now. All answers about snapshots are made here.
func (e *Snapshotter) Shown(v drivebay.VolumeSnapshot) drivebay.VolumeSnapshot {
	v.Unavailable = cmp.Or(e.driveFault(v.Location.Drives), e.lvmFault(v.Location))
	return v
}

// driveFault returns why no copy can be made of what is on some drives; "": one can.
func (e *Snapshotter) driveFault(drives []string) string {
	s := e.Drives.Snapshot()
	for _, id := range drives {
		switch d, known := steps.DriveOf(s, id); {
		case !known:
			return "drive " + id + " is not here"
		case d.Status != drivebay.StatusOnline:
			return fmt.Sprintf("drive %s is %v", id, d.Status)
		case d.Kernel != nil && (d.Kernel.LaneStuck > 0 || d.Kernel.Frozen >= frozenFor || d.Kernel.GivenUp()):
			return "drive " + id + " does not answer"
		case d.NotWritten() != "": // a copy is a write to the volume group
			return fmt.Sprintf("drive %s: %s", id, d.NotWritten())
		}
	}
	if err := e.Inventory.Partitions.Trusted(drives); err != nil {
		return err.Error()
	}
	return ""
}

// lvmFault returns why LVM makes no copy of a snapshot; "": it does. The record alone proves nothing, nor does a report that is too old.
func (e *Snapshotter) lvmFault(l drivebay.Location) string {
	if why := e.Inventory.Groups.LVMLate(); why != "" {
		return why
	}
	g := e.Inventory.Groups.LVMNow().Group(l.VG)
	lv := partitions.LVIn(g, l)
	if lv == nil {
		return "LVM does not show it in volume group " + l.VG
	}
	if pool := g.LV(lv.Pool); pool != nil && (pool.Health == "failed" || pool.Health == "metadata_read_only") { // lvmthin(7)
		return fmt.Sprintf("the thin pool %s is %s", pool.Name, pool.Health)
	}
	return ""
}
