package device

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// OpenDrive opens a drive exclusively while it has no partitions. The open device is proved to
// be the drive, whatever its name was a moment ago.
func (e *Opener) OpenDrive(ctx context.Context, id string) (host.Disk, *drivebay.Drive, error) {
	d, err := e.Partitions.Drive(id)
	if err != nil {
		return nil, nil, err
	}
	parts, err := partitions.ListParts(e.Machine, d.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("drive %s: partitions: %w", id, err)
	}
	disk, err := e.OpenForWriting(ctx, WriteTarget{Device: mounttable.Device{Dev: "/dev/" + d.Name}, Drives: []string{id}, On: id, whole: d.Size, Alone: len(parts) == 0})
	if err != nil {
		return nil, nil, fmt.Errorf("drive %s: %w", id, err)
	}
	return disk, d, nil
}
