package mounts

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
)

// ProveFS refuses a device that does not have the filesystem that was made for the
// volume: its UUID was chosen before it was made, and no other has it. ProveFS formats
// nothing.
func ProveFS(disk host.Disk, v *drivebay.Volume) error {
	c := content.Detect(disk, disk.Size(), disk.BlockSize())
	if err := device.RefuseReplicated(disk, v.FSType); err != nil {
		return err
	}
	if content.Has(c, "", v.FSType, v.FSUUID) {
		return nil
	}
	if c.Reason != "" {
		return fmt.Errorf("the filesystem: %w: %s", host.ErrUnreadable, c.Reason)
	}
	return fmt.Errorf("%w: %s is to have %s %s, and has %s", drivebay.ErrRefused, v.Location.Kind, v.FSType, v.FSUUID, content.Describe(c))
}
