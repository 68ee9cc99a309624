package inventory

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/instances"
)

// RefuseSecond returns an error while a drive has a volume of the id, and before all drives were listed: a
// second volume would be empty, and be taken for the first.
func (e *Inventory) RefuseSecond(id string, own ...drivebay.Location) error {
	if err := e.UnreadDrives(EveryDrive); err != nil {
		return err
	}
	if others := e.Instances.OthersOf(id, own...); len(others) > 0 {
		return fmt.Errorf("volume %s: %w: %s: it is taken in; retry later", id, instances.ErrElsewhere, others[0].Drive)
	}
	return e.Instances.RefuseOldCopy(id)
}

// RefuseSecondInstance is RefuseSecond for a volume that may be on its drive already.
func (e *Inventory) RefuseSecondInstance(rec *drivebay.VolumeRecord) error {
	v := &rec.Volume
	own := instances.LocationsOf(rec)
	if slices.ContainsFunc(e.Instances.InstancesOf(v.ID), func(o instances.OnDrive) bool { return o.Is(v.Location) }) {
		return nil
	}
	return e.RefuseSecond(v.ID, own...)
}
