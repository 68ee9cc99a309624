package volume

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// MoveBeforeUse sets whether a volume whose drive has to leave is moved before it is staged again. A volume
// that cannot move while it is in use would otherwise stay on the drive for as long as its pod starts again
// whenever it ends.
func (e operatorCalls) MoveBeforeUse(_ context.Context, id string, on bool) error {
	_, err := e.ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if usage := r.Volume.Usage; on && usage != drivebay.VolumeReleasing && usage != drivebay.VolumeUsageFailed {
			return fmt.Errorf("%w: none of its drives has to leave", drivebay.ErrInvalid)
		}
		r.Volume.MoveBeforeUse = on
		return nil
	})
	if err != nil {
		return fmt.Errorf("move volume %s before use: %w", id, err)
	}
	return nil
}

// movesFirst refuses to stage a volume that is to move first. Where it is staged it stays so, and where the move has
// failed it can be used.
func (e nodeCalls) movesFirst(id string) error {
	r, err := e.ledger.Record(id)
	if v := &r.Volume; err != nil || !v.MoveBeforeUse || v.Usage != drivebay.VolumeReleasing || len(v.Publications) > 0 {
		return nil // without a record the stage itself fails
	}
	return fmt.Errorf("stage volume %s: %w: it is moved off drive %s first, as an operator has requested", id, drivebay.ErrUnavailable, strings.Join(r.Volume.Location.Drives, " and "))
}
