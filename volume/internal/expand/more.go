package expand

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

// fitsMetadata refuses a size for which the room of a replicated volume has not enough metadata of DRBD.
func fitsMetadata(v *drivebay.Volume, size uint64) error {
	if v.Replication == nil {
		return nil
	}
	piece := size + place.OverheadOf(v)
	if drbd.DeviceFor(size+place.Overhead(v.LUKSUUID))+drbd.MetadataBytes(piece) > piece {
		return fmt.Errorf("%w: requested %s, for which the metadata of its replication have no room: disable the replication, expand, and enable it again", drivebay.ErrRange, partitions.SizeText(size))
	}
	return nil
}

// FitsMore refuses to grow the piece of a volume by so much where the volume is; nothing is moved to make room.
func (e *Expander) FitsMore(v *drivebay.Volume, more uint64) error {
	if err := groups.RefuseMoving(v.Location); err != nil {
		return err
	}
	have, err := e.Inventory.PlacementView().GrowsTo(v)
	if err == nil && have < v.Size+more {
		err = fmt.Errorf("%w: it needs %s more where it is, and has %s", drivebay.ErrNoSpace, partitions.SizeText(more), partitions.SizeText(have-min(have, v.Size)))
	}
	return err
}
