package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/units"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Want is what a spare drive must have.
type Want struct {
	Like  *drivebay.Drive // the drive that it takes the place of
	Block int             // logical blocks: LVM mixes no sizes in a group
	Taken uint64          // bytes of volumes that have to find room
	Whole uint64          // bytes of the old physical volume: with as many, its free space stays too
}

// WantLike returns what a spare must have in place of the drive that leaves, with that physical volume of the group. Another drive of the group
// stands in for one of which only the id is known: its record was lost while it was away. If LVM does not see the physical volume (""), the
// fullest one of the group stands in: the legs of a mirror are of one size.
func WantLike(s *drivebay.Snapshot, drives []string, leaves string, g *lvm.Group, pv string) (w Want) {
	for _, p := range g.PVs {
		if p.UUID == pv || pv == "" {
			w.Taken, w.Whole = max(w.Taken, g.AllocatedOn(p.UUID)), max(w.Whole, p.Size)
		}
	}
	for _, id := range drives {
		if d, known := steps.DriveOf(s, id); known && d.LogicalBlock > 0 && (w.Like == nil || id == leaves) {
			w.Like, w.Block = d, d.LogicalBlock
		}
	}
	return w
}

// Spare chooses the drive to which the volumes of another drive move: one that accepts
// new volumes, has no physical volume, and is on the device of none of the drives in but. The best is of the same type, at least as
// large as the old one, least worn, and then the smallest. Of smaller ones the largest.
func (s PlacementView) Spare(w Want, but []string) (*drivebay.Drive, error) {
	type offer struct {
		drive *drivebay.Drive
		size  uint64
	}
	beside := func(d *drivebay.Drive) bool {
		return slices.ContainsFunc(but, func(id string) bool {
			o, known := steps.DriveOf(s.Drives, id)
			return id == d.ID || known && units.OfOneDevice(o, d)
		})
	}
	var offers []offer
	for _, r := range s.Rooms(drivebay.Class{Backing: drivebay.BackingLVM}) {
		size := place.PVExtents(place.Largest(r.Free).Size()) * lvm.ExtentSize
		if r.PV == nil && !beside(r.Drive) && r.Drive.LogicalBlock == w.Block && size >= max(w.Taken, 1) {
			offers = append(offers, offer{r.Drive, size})
		}
	}
	if len(offers) == 0 {
		return nil, fmt.Errorf("no spare: %w: %.1f GiB free in one piece are needed, on a GOOD claimed drive with blocks of %d bytes and no volume group on it", drivebay.ErrNoSpace, float64(w.Taken)/partitions.GiB, w.Block)
	}
	small := func(o offer) int { return int(min(o.size/max(w.Whole, 1), 1)) } // 0: smaller than the old one
	alike := func(o offer) int { return Btoi(w.Like != nil && o.drive.Type == w.Like.Type) }
	return slices.MinFunc(offers, func(a, b offer) int {
		less := cmp.Compare(a.size, b.size)
		if small(a) == 0 {
			less = -less
		}
		return cmp.Or(cmp.Compare(alike(b), alike(a)), cmp.Compare(small(b), small(a)), cmp.Compare(wornBy(a.drive), wornBy(b.drive)), less, cmp.Compare(a.drive.ID, b.drive.ID))
	}).drive, nil
}

// Btoi returns 1 for true.
func Btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
