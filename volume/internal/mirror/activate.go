package mirror

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// IfTrusted calls appear, which makes the piece of a volume have a device, unless the drives of the
// volume are not trusted.
func (e *Mirrors) IfTrusted(v *drivebay.Volume, appear func() (mounttable.Device, error)) (mounttable.Device, error) {
	if err := e.Partitions.Trusted(v.Location.Drives); err != nil {
		if d, err := e.Device.Device(v); err == nil && StagedAt(v) != nil && !e.Inventory.Untrusted(v.Location.Drives) { // a volume in use stays usable
			return d, nil
		}
		return mounttable.Device{}, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return appear()
}

// Activate makes the device of a logical volume appear.
func (e *Mirrors) Activate(ctx context.Context, v *drivebay.Volume) (mounttable.Device, error) {
	if e.Groups.ActiveLately(v.Location) {
		if d, err := e.Device.Device(v); err == nil {
			return d, nil
		}
	}
	appear := func() error { return e.Groups.LVMActivate(ctx, v.Location, e.Device.Appearing(v)) }
	if v.Location.Kind == drivebay.LocationMirror {
		appear = func() error { return e.activateMirror(ctx, v) }
	}
	if err := e.Device.LockGone(ctx, v); err != nil {
		return mounttable.Device{}, err
	}
	if err := appear(); err != nil {
		return mounttable.Device{}, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return e.Device.Device(v)
}

// Deactivate removes the device of a logical volume, unless a layer above it stays open.
func (e *Mirrors) Deactivate(ctx context.Context, v *drivebay.Volume) error {
	if e.Device.StaysOpen(v) {
		return nil
	}
	mirror := v.Location.Kind == drivebay.LocationMirror
	if mirror {
		x := e.Groups.LVMNow()
		if _, _, err := e.live(ctx, v, e.mirrorLegs(v.Location, x.Group(v.Location.VG), x.Reported())); err != nil {
			return fmt.Errorf("volume %s: %w", v.ID, err)
		}
	}
	if err := e.Groups.LVMActivate(ctx, v.Location, lvm.Deactivate(v.Location.VG, v.Location.LV)); err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	if mirror {
		return e.closed(ctx, v)
	}
	return nil
}

// Boot returns the kernel's id of this boot (random(4), boot_id); "" if it cannot be read.
func (e *Mirrors) Boot() string {
	text, err := e.Machine.ReadFile("proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
