package drivemgr

import (
	"context"
	"errors"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// hearing is the machine as a look through a lane sees it: what the drive answers
// is heard by the lane.
type hearing struct {
	host.Machine
	lane *lane.Lane
}

func (h hearing) OpenDrive(ctx context.Context, dev string) (host.Drive, error) {
	d, err := h.Machine.OpenDrive(ctx, dev)
	if err != nil {
		return nil, err
	}
	h.lane.Heard(h.Now())
	return heard{d, h}, nil
}

type heard struct {
	host.Drive
	by hearing
}

// Page: a refusal is an answer, too. That the time is up, or that there is no
// drive, the kernel says and not the drive.
func (d heard) Page(ctx context.Context, p host.Page) ([]byte, error) {
	b, err := d.Drive.Page(ctx, p)
	if !errors.Is(err, host.ErrTimeout) && !errors.Is(err, host.ErrGone) {
		d.by.lane.Heard(d.by.Now())
	}
	return b, err
}

func (d heard) ReadMedium(b []byte, at int64) (int, error) {
	n, err := d.Drive.ReadMedium(b, at)
	if err == nil || n > 0 {
		d.by.lane.Heard(d.by.Now())
	}
	return n, err
}

func (d heard) ReadAt(b []byte, at int64) (int, error) {
	n, err := d.Drive.ReadAt(b, at)
	if err == nil || n > 0 {
		d.by.lane.Heard(d.by.Now())
	}
	return n, err
}
