package csi

import (
	"cmp"
	"context"
	"errors"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
)

// NodeGetVolumeHealth returns the condition of the volume, with that of the path if one
// is given. The volume may never have been at this path.
func (n *node) NodeGetVolumeHealth(ctx context.Context, req *wire.NodeGetVolumeHealthRequest) (*wire.NodeGetVolumeHealthResponse, error) {
	v, err := n.volume(req.VolumeId)
	if err != nil {
		return nil, err
	}
	condition := v.Condition
	if path := cmp.Or(req.VolumePublishPath, req.StagingTargetPath); path != "" {
		stats, err := n.volumes.Stats(ctx, drivebay.StatsRequest{Volume: v.ID, Path: path, Staging: req.StagingTargetPath})
		switch {
		case err == nil:
			condition = stats.Condition
		case !errors.Is(err, drivebay.ErrNotFound):
			return nil, err
		}
	}
	return &wire.NodeGetVolumeHealthResponse{VolumeHealth: healthAnswer(v.ID, condition)}, nil
}

// NodeGetStorageHealth answers from the last verdicts. It reads no drive. While the manager cannot work, these may be old, or lack the claims.
func (n *node) NodeGetStorageHealth(context.Context, *wire.NodeGetStorageHealthRequest) (*wire.NodeGetStorageHealthResponse, error) {
	snap, err := n.snapshot()
	if err != nil {
		return nil, err
	}
	resp := &wire.NodeGetStorageHealthResponse{}
	var unready []drivebay.StorageFinding
	if why := n.engine.Unready(); len(why) > 0 {
		unready = []drivebay.StorageFinding{{Reason: drivebay.StorageNotObserved, Message: strings.Join(why, "; ")}}
	}
	for _, f := range append(unready, drivebay.StorageFindings(snap)...) {
		kind := wire.StorageHealthErrorType_STORAGE_DEGRADED
		if f.Unreachable {
			kind = wire.StorageHealthErrorType_STORAGE_UNREACHABLE
		}
		resp.BackendHealth = append(resp.BackendHealth, &wire.NodeGetStorageHealthResponse_StorageBackendHealth{
			Status: kind, Reason: rpc.Clip(f.Reason, maxString), Message: f.Short()})
	}
	return resp, nil
}
