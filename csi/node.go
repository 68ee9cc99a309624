package csi

import (
	"context"
	"fmt"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

type node struct {
	wire.UnimplementedNodeServer
	*Server
	volumes NodeVolumes
}

func newNode(s *Server) *node { return &node{Server: s, volumes: s.opt.Volumes} }

func (n *node) NodeGetCapabilities(context.Context, *wire.NodeGetCapabilitiesRequest) (*wire.NodeGetCapabilitiesResponse, error) {
	resp := &wire.NodeGetCapabilitiesResponse{}
	for _, kind := range granted(nodeCapabilities, n.level()) {
		resp.Capabilities = append(resp.Capabilities, &wire.NodeServiceCapability{
			Type: &wire.NodeServiceCapability_Rpc{Rpc: &wire.NodeServiceCapability_RPC{Type: kind}}})
	}
	return resp, nil
}

// NodeGetInfo sets no maximum number of volumes: the drives are full before.
func (n *node) NodeGetInfo(context.Context, *wire.NodeGetInfoRequest) (*wire.NodeGetInfoResponse, error) {
	return &wire.NodeGetInfoResponse{NodeId: n.opt.NodeID, AccessibleTopology: topologyOf(n.opt.NodeID)}, nil
}

func (n *node) NodeGetVolumeStats(ctx context.Context, req *wire.NodeGetVolumeStatsRequest) (*wire.NodeGetVolumeStatsResponse, error) {
	if err := findable(req.VolumeId, req.VolumePath); err != nil {
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

func (n *node) NodeExpandVolume(ctx context.Context, req *wire.NodeExpandVolumeRequest) (*wire.NodeExpandVolumeResponse, error) {
	if err := findable(req.VolumeId, req.VolumePath); err != nil {
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

// findable refuses a path that is not absolute with ErrNotFound: csi-sanity sends
// "some/path" and expects NOT_FOUND.
func findable(volume, path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("volume %q: %w: the path is not absolute", volume, drivebay.ErrNotFound)
	}
	return nil
}
