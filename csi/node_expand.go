package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
)

func (n *node) NodeExpandVolume(ctx context.Context, req *wire.NodeExpandVolumeRequest) (*wire.NodeExpandVolumeResponse, error) {
	if err := checkVolumePath(req.VolumeId, req.VolumePath); err != nil {
		return nil, err
	}
	r, err := n.expansion(req.VolumeId, req.CapacityRange, req.VolumeCapability)
	if err != nil {
		return nil, err
	}
	size, err := n.volumes.ExpandNode(ctx, req.VolumeId, req.VolumePath, r, req.Secrets)
	if err != nil {
		return nil, err
	}
	return &wire.NodeExpandVolumeResponse{CapacityBytes: signed(size)}, nil
}
