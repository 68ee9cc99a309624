package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// device is where a volume is now.
type device struct {
	dev  string // "/dev/sda1", "/dev/dm-3"
	num  string // "8:1"
	name string // in sysfs
	size uint64 // bytes
}

// look lists what there is of volumes on the drives of a snapshot.
func (e *Engine) look(context.Context, *drivebay.Snapshot) error { return nil }

// device is where a volume is now; no drive is touched.
func (e *Engine) device(v *drivebay.Volume) (device, error) {
	return device{}, fmt.Errorf("volume %s: %w", v.ID, drivebay.ErrNotFound)
}

// activate makes the device of a volume appear.
func (e *Engine) activate(_ context.Context, v *drivebay.Volume) (device, error) { return e.device(v) }

// deactivate makes it go, where it is one that can.
func (e *Engine) deactivate(context.Context, *drivebay.Volume) error { return nil }

// gone says that a complete listing of the volume's drives lacks it.
func (e *Engine) gone(*drivebay.Volume) bool { return false }

// lvFacts is what LVM says of a volume; nil of a partition.
func (e *Engine) lvFacts(*drivebay.Volume) *drivebay.LVFacts { return nil }
