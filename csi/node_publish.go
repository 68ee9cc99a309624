package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (n *node) NodePublishVolume(ctx context.Context, req *wire.NodePublishVolumeRequest) (*wire.NodePublishVolumeResponse, error) {
	if req.StagingTargetPath == "" { // the error table has a separate code for this
		return nil, status.Error(codes.FailedPrecondition, "staging_target_path: required: a volume must be staged before it is published")
	}
	u, err := n.mountable(req)
	if err != nil {
		return nil, err
	}
	return &wire.NodePublishVolumeResponse{}, n.volumes.PublishVolume(ctx, drivebay.PublishRequest{
		Volume: req.VolumeId, Staging: req.StagingTargetPath, Target: req.TargetPath, Block: u.block, FSType: u.fsType, Options: u.flags,
		Access: u.access, ReadOnly: req.Readonly || u.access == drivebay.AccessReader, Pod: podOf(req.VolumeContext)})
}

func (n *node) NodeUnpublishVolume(ctx context.Context, req *wire.NodeUnpublishVolumeRequest) (*wire.NodeUnpublishVolumeResponse, error) {
	return &wire.NodeUnpublishVolumeResponse{}, n.volumes.UnpublishVolume(ctx, req.VolumeId, req.TargetPath)
}
