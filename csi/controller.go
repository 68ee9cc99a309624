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
	has, err := c.level()
	if err != nil { // a sidecar asks once, and keeps the answer
		return nil, err
	}
	resp := &wire.ControllerGetCapabilitiesResponse{}
	for _, kind := range granted(controllerCapabilities, has) {
		resp.Capabilities = append(resp.Capabilities, &wire.ControllerServiceCapability{
			Type: &wire.ControllerServiceCapability_Rpc{Rpc: &wire.ControllerServiceCapability_RPC{Type: kind}}})
	}
	return resp, nil
}
