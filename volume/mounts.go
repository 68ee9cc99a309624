package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// mounted are the mounts of a volume's device, as the mount table has them now.
func (e *Engine) mounted(ctx context.Context, v *drivebay.Volume) ([]host.Mount, error) {
	d, err := e.device(v)
	if err != nil {
		return nil, err
	}
	all, err := e.machine.Mounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	var out []host.Mount
	for _, m := range all {
		if m.DevNum == d.num {
			out = append(out, m)
		}
	}
	return out, nil
}
