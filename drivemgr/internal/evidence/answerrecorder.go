package evidence

import (
	"context"
	"errors"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// AnswerRecorder is a machine that reports each answer of a drive to the lane of the drive.
type AnswerRecorder struct {
	host.Machine
	Lane *lane.Lane
}

// OpenDrive opens a drive whose answers are reported to the lane.
func (h AnswerRecorder) OpenDrive(ctx context.Context, dev string) (host.OpenDrive, error) {
	d, err := h.Machine.OpenDrive(ctx, dev)
	if err != nil {
		return nil, err
	}
	h.Lane.Heard(h.Now())
	return answeringDrive{d, h}, nil
}

type answeringDrive struct {
	host.OpenDrive
	by AnswerRecorder
}

// Page counts a refusal as an answer. A timeout and a missing device come from the
// kernel and not from the drive.
func (d answeringDrive) Page(ctx context.Context, p host.Page) ([]byte, error) {
	b, err := d.OpenDrive.Page(ctx, p)
	if !errors.Is(err, host.ErrTimeout) && !errors.Is(err, host.ErrGone) {
		d.by.Lane.Heard(d.by.Now())
	}
	return b, err
}

func (d answeringDrive) ReadMedium(b []byte, at int64) (int, error) {
	n, err := d.OpenDrive.ReadMedium(b, at)
	if err == nil || n > 0 {
		d.by.Lane.Heard(d.by.Now())
	}
	return n, err
}

func (d answeringDrive) ReadAt(b []byte, at int64) (int, error) {
	n, err := d.OpenDrive.ReadAt(b, at)
	if err == nil || n > 0 {
		d.by.Lane.Heard(d.by.Now())
	}
	return n, err
}
