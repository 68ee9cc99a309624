package drivemgr

import (
	"context"
	"errors"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// answerRecorder is the machine as a look sees it: it reports each answer of a drive to the
// drive's lane.
type answerRecorder struct {
	host.Machine
	lane *lane.Lane
}

func (h answerRecorder) OpenDrive(ctx context.Context, dev string) (host.Drive, error) {
	d, err := h.Machine.OpenDrive(ctx, dev)
	if err != nil {
		return nil, err
	}
	h.lane.Heard(h.Now())
	return answeringDrive{d, h}, nil
}

type answeringDrive struct {
	host.Drive
	by answerRecorder
}

// Page counts a refusal as an answer. A timeout and a missing device come from the
// kernel and not from the drive.
func (d answeringDrive) Page(ctx context.Context, p host.Page) ([]byte, error) {
	b, err := d.Drive.Page(ctx, p)
	if !errors.Is(err, host.ErrTimeout) && !errors.Is(err, host.ErrGone) {
		d.by.lane.Heard(d.by.Now())
	}
	return b, err
}

func (d answeringDrive) ReadMedium(b []byte, at int64) (int, error) {
	n, err := d.Drive.ReadMedium(b, at)
	if err == nil || n > 0 {
		d.by.lane.Heard(d.by.Now())
	}
	return n, err
}

func (d answeringDrive) ReadAt(b []byte, at int64) (int, error) {
	n, err := d.Drive.ReadAt(b, at)
	if err == nil || n > 0 {
		d.by.lane.Heard(d.by.Now())
	}
	return n, err
}
