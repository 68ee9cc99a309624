package addons

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/drivebay/drivebay"
)

type reclaimNode struct {
	reclaimspace.UnimplementedReclaimSpaceNodeServer
	*Server
}

// NodeReclaimSpace uses the staging path if there is no volume_path. The proto requires
// a volume_path, but the sidecar of kubernetes-csi-addons v0.14.0 never sends it
// (internal/sidecar/service/reclaimspace.go).
func (r *reclaimNode) NodeReclaimSpace(ctx context.Context, req *reclaimspace.NodeReclaimSpaceRequest) (*reclaimspace.NodeReclaimSpaceResponse, error) {
	path := cmp.Or(req.VolumePath, req.StagingTargetPath)
	if path == "" {
		return nil, fmt.Errorf("volume_path: %w: the field is required", drivebay.ErrInvalid)
	}
	block, err := r.usable(req)
	if err != nil {
		return nil, err
	}
	done, err := r.opt.Volumes.Reclaim(ctx, drivebay.ReclaimRequest{
		Volume: req.VolumeId, Path: path, Staging: req.StagingTargetPath, Block: block, Secrets: req.Secrets})
	if err != nil {
		return nil, err
	}
	return &reclaimspace.NodeReclaimSpaceResponse{PreUsage: consumption(done.Before), PostUsage: consumption(done.After)}, nil
}

type reclaimController struct {
	reclaimspace.UnimplementedReclaimSpaceControllerServer
	volumes interface {
		Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error)
	}
}

// ControllerReclaimSpace has no path: the volume may be mounted anywhere, or nowhere.
// The manager of kubernetes-csi-addons v0.14.0 calls it after each NodeReclaimSpace, and
// treats any error but UNIMPLEMENTED as a failed job
// (internal/controller/csiaddons/reclaimspacejob_controller.go).
func (r *reclaimController) ControllerReclaimSpace(ctx context.Context, req *reclaimspace.ControllerReclaimSpaceRequest) (*reclaimspace.ControllerReclaimSpaceResponse, error) {
	if err := checkContext("parameters", req.Parameters); err != nil {
		return nil, err
	}
	done, err := r.volumes.Reclaim(ctx, drivebay.ReclaimRequest{Volume: req.VolumeId, Secrets: req.Secrets})
	if err != nil {
		return nil, err
	}
	return &reclaimspace.ControllerReclaimSpaceResponse{PreUsage: consumption(done.Before), PostUsage: consumption(done.After)}, nil
}

func consumption(bytes *uint64) *reclaimspace.StorageConsumption {
	if bytes == nil {
		return nil
	}
	return &reclaimspace.StorageConsumption{UsageBytes: int64(min(*bytes, math.MaxInt64))}
}
