package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

func (c *controller) ControllerExpandVolume(ctx context.Context, req *wire.ControllerExpandVolumeRequest) (*wire.ControllerExpandVolumeResponse, error) {
	r, err := c.expansion(req.VolumeId, req.CapacityRange, req.VolumeCapability)
	if err != nil {
		return nil, err
	}
	v, node, err := c.volumes.ExpandVolume(ctx, req.VolumeId, r)
	if err != nil {
		return nil, err
	}
	return &wire.ControllerExpandVolumeResponse{CapacityBytes: signed(v.Size), NodeExpansionRequired: node}, nil
}

// expansion reads the size that both ExpandVolume calls request. A capability, if there
// is one, has to fit the volume.
func (s *Server) expansion(id string, size *wire.CapacityRange, c *wire.VolumeCapability) (drivebay.SizeRange, error) {
	r, err := sizeRange(size)
	if err != nil || c == nil {
		return r, err
	}
	_, err = s.usable(id, c)
	return r, err
}

// usable reads a capability and checks that it fits the volume. It accepts a volume that is not
// in the newest set: the engine checks whether the volume exists.
func (s *Server) usable(id string, c *wire.VolumeCapability) (use, error) {
	u, err := parseUse(c)
	if err != nil {
		return u, err
	}
	if v, ok := s.sets().Volumes().Get(id); ok {
		err = u.fits(&v.Volume)
	}
	return u, err
}
