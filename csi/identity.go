package csi

import (
	"context"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type identity struct {
	wire.UnimplementedIdentityServer
	*Server
}

func (i *identity) GetPluginInfo(context.Context, *wire.GetPluginInfoRequest) (*wire.GetPluginInfoResponse, error) {
	return &wire.GetPluginInfoResponse{Name: Name, VendorVersion: rpc.Clip(i.opt.Version, maxString)}, nil
}

func (i *identity) GetPluginCapabilities(context.Context, *wire.GetPluginCapabilitiesRequest) (*wire.GetPluginCapabilitiesResponse, error) {
	resp := &wire.GetPluginCapabilitiesResponse{}
	for _, kind := range granted(serviceCapabilities, i.pluginLevel()) {
		resp.Capabilities = append(resp.Capabilities, &wire.PluginCapability{
			Type: &wire.PluginCapability_Service_{Service: &wire.PluginCapability_Service{Type: kind}}})
	}
	for _, kind := range granted(expansionCapabilities, i.pluginLevel()) {
		resp.Capabilities = append(resp.Capabilities, &wire.PluginCapability{
			Type: &wire.PluginCapability_VolumeExpansion_{VolumeExpansion: &wire.PluginCapability_VolumeExpansion{Type: kind}}})
	}
	return resp, nil
}

// Probe answers "not ready" until the first listing of all drives is complete, and fails
// while the machine lacks something that only an administrator can provide.
func (i *identity) Probe(context.Context, *wire.ProbeRequest) (*wire.ProbeResponse, error) {
	ready, missing := true, rpc.Lacking(i.sets())
	if i.engine != nil {
		missing = append(i.engine.Unready(), missing...)
	}
	if len(missing) > 0 {
		return nil, status.Error(codes.FailedPrecondition, strings.Join(missing, "; "))
	}
	if i.engine != nil {
		ready = i.engine.Snapshot().Seq > 0
	}
	if ready && i.pluginLevel() != withDrives {
		_, ready = i.sets().Unread()
	}
	return &wire.ProbeResponse{Ready: wrapperspb.Bool(ready)}, nil
}
