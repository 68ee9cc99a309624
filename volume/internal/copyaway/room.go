package copyaway

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/expand"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/moves"
)

// GrowsByMove reports whether a volume is moving to a place where it can have a size.
func GrowsByMove(r *drivebay.VolumeRecord, size uint64) bool {
	return expand.GrowsItself(r) && !inventory.Moved(r) && !inventory.TakenBack(r) && r.Work.Size >= size
}

// moveForRoom is moveAway for a volume that can also stay: it takes a failed attempt back.
func (e *Copier) moveForRoom(ctx context.Context, id string, m *moves.CopyMove) error {
	err := e.moveAway(ctx, id, m)
	passes := errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPending) // for example after a start, until drives are read
	if err == nil || ctx.Err() != nil || errors.Is(err, ledger.ErrStopped) || passes && e.Moves.Moves.Last(id).Tries < moves.RoomTries {
		return err
	}
	return errors.Join(fmt.Errorf("%w: %w", moves.ErrStays, err), e.takeBack(ctx, id))
}
