package csi

import (
	"context"
	"fmt"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

func (n *node) NodeGetVolumeStats(ctx context.Context, req *wire.NodeGetVolumeStatsRequest) (*wire.NodeGetVolumeStatsResponse, error) {
	if err := checkVolumePath(req.VolumeId, req.VolumePath); err != nil {
		return nil, err
	}
	stats, err := n.volumes.Stats(ctx, drivebay.StatsRequest{Volume: req.VolumeId, Path: req.VolumePath, Staging: req.StagingTargetPath})
	if err != nil {
		return nil, err
	}
	resp := &wire.NodeGetVolumeStatsResponse{Usage: usageAnswer(stats)}
	setCondition(resp, stats.Condition)
	return resp, nil
}

// checkVolumePath refuses a path that is not absolute with ErrNotFound: csi-sanity sends
// "some/path" and expects NOT_FOUND.
func checkVolumePath(volume, path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("volume %q: %w: the path is not absolute", volume, drivebay.ErrNotFound)
	}
	return nil
}
