package copyaway

import (
	"context"
	"errors"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/moves"
)

// beginMove starts work on the move of a volume, if it is due and no call holds the volume.
// With beside, the volume may be used meanwhile.
func (e *Copier) beginMove(id, op string, beside bool, do func(context.Context, *moves.CopyMove) error) {
	if last := e.Moves.Moves.Last(id); last.Never || e.Machine.Now().Before(last.Again) {
		return
	}
	end := func() {}
	if !beside {
		var err error
		if end, err = e.Ledger.Begin(id); err != nil {
			return
		}
	}
	ctx, cancel := context.WithCancel(e.Ctx)
	m := &moves.CopyMove{Cancel: cancel, Over: make(chan struct{}), Accept: make(chan struct{}, 1), Beside: beside}
	if !e.Moves.Moves.Enter(id, m) {
		cancel()
		end()
		return
	}
	e.Running.Go(func() {
		defer close(m.Over) // a call that waits for this can begin at once
		err := ledger.Safely(ctx, "volume "+id, func(ctx context.Context) error { return do(ctx, m) })
		if ctx.Err() != nil && !errors.Is(err, ledger.ErrStopped) {
			err = ctx.Err()
		}
		cancel()
		was := e.Moves.Moves.Last(id)
		e.Moves.Moves.Leave(id, err, e.Machine.Now())
		end()
		if err != nil && !errors.Is(err, context.Canceled) && err.Error() != was.Text {
			e.Log.Warn("volume not moved", "op", op, "volume", id, "err", err)
		}
		e.Inventory.ChangedNow()
	})
}

// BeginFirst takes a volume, if need be from a move.
func (e *Copier) BeginFirst(ctx context.Context, id string) (end func(), err error) {
	if end, err = e.Ledger.Begin(id); errors.Is(err, drivebay.ErrPending) && e.Moves.CancelMoveFor(ctx, id) {
		end, err = e.Ledger.Begin(id)
	}
	if err == nil {
		if err = e.unsettled(id); err != nil {
			end()
		}
	}
	return end, err
}
