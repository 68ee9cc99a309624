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
		return fmt.Errorf("volume %s: %w: %s; retry later", id, instances.ErrElsewhere, e.whyNotAdopted(others[0]))
	}
	return e.Instances.RefuseOldCopy(id)
}

// whyNotAdopted returns where a volume is, and why it has no record yet.
func (e *Inventory) whyNotAdopted(o instances.OnDrive) string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for _, id := range o.On {
		if err := e.NotAdopted[id]; err != nil {
			return err.Error()
		}
	}
	return o.Drive + ": it is taken in"
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
