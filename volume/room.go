package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
)

// Room returns whether a volume has room to grow, or to leave a drive, as it is now. It asks no drive and
// changes nothing.
func (e controllerCalls) Room(ctx context.Context, id string, q drivebay.RoomQuery) (drivebay.VolumeRoom, error) {
	e.provision.AwaitReread(ctx)
	rec, err := e.ledger.Record(id)
	if err != nil {
		return drivebay.VolumeRoom{}, err
	}
	var out drivebay.VolumeRoom
	switch err = e.device.MayChange(id); {
	case err != nil:
	case q.Leave != "":
		out.Target, err = e.inventory.PlacementView().RoomToLeave(&rec.Volume, q.Leave)
	default:
		out.Moves, err = e.expand.RoomToGrow(id, q.Size)
	}
	if errors.Is(err, drivebay.ErrInvalid) {
		return out, fmt.Errorf("volume %s: %w", id, err)
	}
	if err != nil {
		out.Against = err.Error()
	}
	return out, nil
}
