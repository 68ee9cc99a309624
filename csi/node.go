package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

type node struct {
	wire.UnimplementedNodeServer
	server *Server
}

// nodeCapabilities are those that are real; a test calls every RPC and holds it
// against this list.
var nodeCapabilities = []wire.NodeServiceCapability_RPC_Type{
	wire.NodeServiceCapability_RPC_GET_STORAGE_HEALTH,
}

func (n *node) NodeGetCapabilities(context.Context, *wire.NodeGetCapabilitiesRequest) (*wire.NodeGetCapabilitiesResponse, error) {
	resp := &wire.NodeGetCapabilitiesResponse{}
	for _, c := range nodeCapabilities {
		resp.Capabilities = append(resp.Capabilities, &wire.NodeServiceCapability{
			Type: &wire.NodeServiceCapability_Rpc{Rpc: &wire.NodeServiceCapability_RPC{Type: c}}})
	}
	return resp, nil
}

func (n *node) NodeGetInfo(context.Context, *wire.NodeGetInfoRequest) (*wire.NodeGetInfoResponse, error) {
	id := n.server.opt.NodeID
	return &wire.NodeGetInfoResponse{NodeId: id, AccessibleTopology: &wire.Topology{Segments: map[string]string{TopologyKey: id}}}, nil
}

// NodeGetStorageHealth answers from the last verdicts; no drive is asked for it.
func (n *node) NodeGetStorageHealth(context.Context, *wire.NodeGetStorageHealthRequest) (*wire.NodeGetStorageHealthResponse, error) {
	snap, err := n.server.snapshot()
	if err != nil {
		return nil, err
	}
	resp := &wire.NodeGetStorageHealthResponse{}
	for _, f := range drivebay.StorageFindings(snap) {
		kind := wire.StorageHealthErrorType_STORAGE_DEGRADED
		if f.Unreachable {
			kind = wire.StorageHealthErrorType_STORAGE_UNREACHABLE
		}
		resp.BackendHealth = append(resp.BackendHealth, &wire.NodeGetStorageHealthResponse_StorageBackendHealth{Status: kind, Reason: f.Reason, Message: f.Message})
	}
	return resp, nil
}
