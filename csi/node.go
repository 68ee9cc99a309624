package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
)

type node struct {
	wire.UnimplementedNodeServer
	*Server
	volumes NodeVolumes
}

func newNode(s *Server) *node { return &node{Server: s, volumes: s.opt.Volumes} }

func (n *node) NodeGetCapabilities(context.Context, *wire.NodeGetCapabilitiesRequest) (*wire.NodeGetCapabilitiesResponse, error) {
	resp := &wire.NodeGetCapabilitiesResponse{}
	for _, kind := range granted(nodeCapabilities, n.pluginLevel()) {
		resp.Capabilities = append(resp.Capabilities, &wire.NodeServiceCapability{
			Type: &wire.NodeServiceCapability_Rpc{Rpc: &wire.NodeServiceCapability_RPC{Type: kind}}})
	}
	return resp, nil
}

// NodeGetInfo sets no maximum number of volumes: the drives are full before.
func (n *node) NodeGetInfo(context.Context, *wire.NodeGetInfoRequest) (*wire.NodeGetInfoResponse, error) {
	return &wire.NodeGetInfoResponse{NodeId: n.opt.NodeID, AccessibleTopology: topologyOf(n.opt.NodeID)}, nil
}
