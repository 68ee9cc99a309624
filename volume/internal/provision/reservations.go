package provision

import (
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// A raw logical volume that grows shows its new extents at once, with the data of their previous
// owner. So the engine first reserves the extents, in a linear volume for each leg, and zeroes the
// reservations. Then one plan of LVM removes them and extends the volume over exactly their extents.
// A reservation that was lost in between is made and zeroed again: the record names a zeroed one by
// its LVM UUID.

// KeyGrowth is the value of the tag KeyWhat of a reservation; its KeyID is the volume.
const KeyGrowth = "growth"

// ReservationsOf returns the reservations that a group has for a volume.
func ReservationsOf(g *lvm.Group, id string) []lvm.LV {
	if g == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(g.LVs), func(lv lvm.LV) bool {
		return partitions.TagOf(&lv, groups.KeyWhat) != KeyGrowth || partitions.TagOf(&lv, groups.KeyID) != id
	})
}

// DropVolume plans to remove a logical volume whose data is of no use.
func DropVolume(group, name string) []lvm.Step {
	return append(lvm.Deactivate(group, name), lvm.Remove(group, name)...)
}

// DropReservations plans to remove what an interrupted growth of a volume has left.
func (e *Provisioner) DropReservations(v *drivebay.Volume) steps.Step {
	return e.Write.LVMStep("reservations", v.Location, new(atomic.Bool), func(r *lvm.Report) (plan []lvm.Step, err error) {
		for _, lv := range ReservationsOf(r.Group(v.Location.VG), v.ID) {
			plan = append(plan, DropVolume(v.Location.VG, lv.Name)...)
		}
		return plan, nil
	})
}
