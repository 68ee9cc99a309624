package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// Stats says how full a volume is and how it is, as seen at a path.
func (e *Engine) Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	return drivebay.VolumeStats{}, fmt.Errorf("volume %s: stats: %w", r.Volume, drivebay.ErrNoSupport)
}
