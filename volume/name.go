package volume

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/instances"
)

// RestoreName gives a volume that was found on its drives what the drives do not have: its name, from which its id
// follows, and when it was made. was is the volume as others remember it. It does nothing to a volume that has a name, and refuses
// one that is not the same volume.
func (e *Engine) RestoreName(id string, was drivebay.Volume) error {
	restored := false
	r, err := e.ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		v := &r.Volume
		switch {
		case v.Name != "":
			return nil
		case drivebay.VolumeID(was.Name) != id:
			return fmt.Errorf("volume %s: %w: its id does not follow from the name %q", id, drivebay.ErrInvalid, was.Name)
		case instances.InstanceOf(v.Location) == "" || instances.InstanceOf(v.Location) != instances.InstanceOf(was.Location):
			return fmt.Errorf("volume %s: %w: %s is on the drives, and %s had the name %q", id, drivebay.ErrRefused, instances.InstanceOf(v.Location), instances.InstanceOf(was.Location), was.Name)
		case v.Undecided() != "":
			return fmt.Errorf("volume %s: %w: %s", id, drivebay.ErrRefused, v.Undecided())
		}
		v.Name, restored = was.Name, true
		if v.Created.IsZero() {
			v.Created = was.Created
		}
		if v.Parameters == nil {
			v.Parameters = was.Parameters
		}
		return nil
	})
	if err != nil || !restored {
		return err
	}
	e.ledger.Note(drivebay.EventVolumeFound, &r.Volume, fmt.Sprintf("volume %q has its name again, which the records had lost", was.Name))
	e.publish()
	return nil
}
