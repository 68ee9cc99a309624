package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
)

type controller struct {
	wire.UnimplementedControllerServer
	*Server
	volumes ControllerVolumes
}

func newController(s *Server) *controller {
	if s.opt.Cluster != nil {
		return &controller{Server: s, volumes: s.opt.Cluster}
	}
	return &controller{Server: s, volumes: s.opt.Volumes}
}

func (c *controller) ControllerGetCapabilities(context.Context, *wire.ControllerGetCapabilitiesRequest) (*wire.ControllerGetCapabilitiesResponse, error) {
	resp := &wire.ControllerGetCapabilitiesResponse{}
	for _, kind := range granted(controllerCapabilities, c.level()) {
		resp.Capabilities = append(resp.Capabilities, &wire.ControllerServiceCapability{
			Type: &wire.ControllerServiceCapability_Rpc{Rpc: &wire.ControllerServiceCapability_RPC{Type: kind}}})
	}
	return resp, nil
}
