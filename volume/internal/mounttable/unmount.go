package mounttable

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Unmount unmounts what is on top at a place. The place counts as being unmounted until the kernel has returned, also after the caller
// has gone. The lane of the volume admits one call at a time.
func (e *Reader) Unmount(ctx context.Context, at host.Place) error {
	e.unmounting.Store(at.String(), true)
	defer e.unmounting.Delete(at.String())
	return e.Machine.Unmount(ctx, at)
}

// Settled refuses a place at which an unmount is still under way: what is mounted there is about to go.
func (e *Reader) Settled(at host.Place) error {
	if _, under := e.unmounting.Load(at.String()); under {
		return fmt.Errorf("%w: an earlier unmount of %s has not ended; retry later", drivebay.ErrPending, at)
	}
	return nil
}
