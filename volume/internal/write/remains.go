package write

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// NoRemains returns the last step of removing a logical volume: it waits until what the
// group's volumes have left in free extents is wiped. Some of it may be this volume's.
func (e *Writer) NoRemains(l drivebay.Location) steps.Step {
	return steps.Step{Name: "nothing left elsewhere",
		Done: func(ctx context.Context) (bool, error) {
			for _, id := range l.Drives {
				left, err := e.Erase.RemainsOn(id)
				switch {
				case err != nil:
					return false, err
				case len(left) > 0 && ledger.IsMoving(l):
					waits := e.Groups.WaitReason(l.VG)
					if waits != "" {
						waits = ". It has not moved yet: " + waits
					}
					return false, fmt.Errorf("volume group %s: %w: what its volumes leave on drive %s is wiped when it has moved%s", l.VG, drivebay.ErrPending, id, waits)
				case len(left) > 0:
					r, err := e.MaybeReport(ctx, l)
					if err != nil {
						return false, err
					}
					if err := e.Erase.Unwiped(l, r); err != nil {
						return false, nil
					}
				}
			}
			return true, nil
		},
		Do: func(ctx context.Context) error { return e.Erase.WipeFree(ctx, l) },
	}
}
