package addons

import (
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
)

type healerServer struct {
	healer.UnimplementedHealerNodeServer
	*Server
}

// NodeHealer repairs a volume and returns its condition at the path afterward, with the
// text of NodeGetVolumeStats. The engine's journal has the repairs.
func (h *healerServer) NodeHealer(ctx context.Context, req *healer.NodeHealerRequest) (*healer.NodeHealerResponse, error) {
	if err := checkContext("volume_context", req.VolumeContext); err != nil {
		return nil, err
	}
	block, err := h.usable(req)
	if err != nil {
		return nil, err
	}
	if _, err := h.opt.Volumes.Heal(ctx, drivebay.HealRequest{
		Volume: req.VolumeId, Path: req.VolumePath, Staging: req.StagingTargetPath, Block: block,
		Options: req.VolumeCapability.GetMount().GetMountFlags(), Secrets: req.Secrets}); err != nil {
		return nil, err
	}
	stats, err := h.opt.Volumes.Stats(ctx, drivebay.StatsRequest{Volume: req.VolumeId, Path: req.VolumePath, Staging: req.StagingTargetPath})
	if err != nil {
		return nil, err
	}
	return &healer.NodeHealerResponse{Abnormal: stats.Condition.Abnormal(), Message: stats.Condition.Message()}, nil
}
