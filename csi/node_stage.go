package csi

import (
	"context"
	"fmt"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

func (n *node) NodeStageVolume(ctx context.Context, req *wire.NodeStageVolumeRequest) (*wire.NodeStageVolumeResponse, error) {
	u, err := n.mountable(req)
	if err != nil {
		return nil, err
	}
	return &wire.NodeStageVolumeResponse{}, n.volumes.StageVolume(ctx, drivebay.StageRequest{
		Volume: req.VolumeId, Path: req.StagingTargetPath, Block: u.block, FSType: u.fsType, Options: u.flags, Access: u.access, Secrets: req.Secrets})
}

func (n *node) NodeUnstageVolume(ctx context.Context, req *wire.NodeUnstageVolumeRequest) (*wire.NodeUnstageVolumeResponse, error) {
	return &wire.NodeUnstageVolumeResponse{}, n.volumes.UnstageVolume(ctx, req.VolumeId, req.StagingTargetPath)
}

// mounting is a request to stage or to publish.
type mounting interface {
	GetVolumeId() string
	GetVolumeCapability() *wire.VolumeCapability
	GetVolumeContext() map[string]string
	GetPublishContext() map[string]string
}

func (n *node) mountable(req mounting) (use, error) {
	if len(req.GetPublishContext()) > 0 {
		return use{}, fmt.Errorf("publish_context: %w: the plugin has no ControllerPublishVolume and returns no publish_context", drivebay.ErrInvalid)
	}
	if err := checkContext(req.GetVolumeContext()); err != nil {
		return use{}, err
	}
	return n.usable(req.GetVolumeId(), req.GetVolumeCapability())
}
