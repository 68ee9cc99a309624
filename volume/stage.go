package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// StageVolume makes a volume ready at a path of its own.
func (e *Engine) StageVolume(ctx context.Context, r drivebay.StageRequest) error {
	return fmt.Errorf("volume %s: stage: %w", r.Volume, drivebay.ErrNoSupport)
}

// UnstageVolume undoes StageVolume.
func (e *Engine) UnstageVolume(ctx context.Context, id, path string) error {
	return fmt.Errorf("volume %s: unstage: %w", id, drivebay.ErrNoSupport)
}

// PublishVolume makes a staged volume appear at a path.
func (e *Engine) PublishVolume(ctx context.Context, r drivebay.PublishRequest) error {
	return fmt.Errorf("volume %s: publish: %w", r.Volume, drivebay.ErrNoSupport)
}

// UnpublishVolume undoes PublishVolume.
func (e *Engine) UnpublishVolume(ctx context.Context, id, path string) error {
	return fmt.Errorf("volume %s: unpublish: %w", id, drivebay.ErrNoSupport)
}

// ExpandNode makes the filesystem of a volume as large as its device.
func (e *Engine) ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange) (uint64, error) {
	return 0, fmt.Errorf("volume %s: expand: %w", id, drivebay.ErrNoSupport)
}

// Stats says how full a volume is and how it is, as seen at a path.
func (e *Engine) Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	return drivebay.VolumeStats{}, fmt.Errorf("volume %s: stats: %w", r.Volume, drivebay.ErrNoSupport)
}
