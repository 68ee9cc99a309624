package addons

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
)

type healerServer struct {
	healer.UnimplementedHealerNodeServer
	*Server
}

// NodeHealer answers how the volume is after all that could be done for it, in the
// words of its VolumeCondition. What was done is in the engine's journal.
func (h *healerServer) NodeHealer(ctx context.Context, req *healer.NodeHealerRequest) (*healer.NodeHealerResponse, error) {
	if err := checkContext("volume_context", req.VolumeContext); err != nil {
		return nil, err
	}
	block, err := h.usable(req)
	if err != nil {
		return nil, err
	}
	if _, err := h.opt.Volumes.Heal(ctx, drivebay.HealRequest{
		Volume: req.VolumeId, Path: req.VolumePath, Staging: req.StagingTargetPath, Block: block, Secrets: req.Secrets}); err != nil {
		return nil, err
	}
	v, ok := h.opt.Volumes.Volumes().Get(req.VolumeId)
	if !ok {
		return nil, fmt.Errorf("volume %q: %w: it is gone since it was healed", req.VolumeId, drivebay.ErrNotFound)
	}
	return &healer.NodeHealerResponse{Abnormal: v.Condition.Abnormal(), Message: v.Condition.Message()}, nil
}
