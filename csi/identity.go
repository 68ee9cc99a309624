package csi

import (
	"context"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type identity struct {
	wire.UnimplementedIdentityServer
	server *Server
}

func (i *identity) GetPluginInfo(context.Context, *wire.GetPluginInfoRequest) (*wire.GetPluginInfoResponse, error) {
	return &wire.GetPluginInfoResponse{Name: Name, VendorVersion: i.server.opt.Version}, nil
}

// GetPluginCapabilities: volumes are on one node, so its topology counts.
func (i *identity) GetPluginCapabilities(context.Context, *wire.GetPluginCapabilitiesRequest) (*wire.GetPluginCapabilitiesResponse, error) {
	return &wire.GetPluginCapabilitiesResponse{Capabilities: []*wire.PluginCapability{{
		Type: &wire.PluginCapability_Service_{Service: &wire.PluginCapability_Service{Type: wire.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS}},
	}}}, nil
}

// Probe is not ready during the first inventory, and fails while something is
// missing that only an administrator can mend.
func (i *identity) Probe(context.Context, *wire.ProbeRequest) (*wire.ProbeResponse, error) {
	if missing := i.server.engine.Unready(); len(missing) > 0 {
		return nil, status.Error(codes.FailedPrecondition, strings.Join(missing, "; "))
	}
	return &wire.ProbeResponse{Ready: wrapperspb.Bool(i.server.engine.Snapshot().Seq > 0)}, nil
}
