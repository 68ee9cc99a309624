package csi

import (
	"context"
	"fmt"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
)

func (c *controller) ValidateVolumeCapabilities(_ context.Context, req *wire.ValidateVolumeCapabilitiesRequest) (*wire.ValidateVolumeCapabilitiesResponse, error) {
	v, err := c.volume(req.VolumeId)
	if err != nil {
		return nil, err
	}
	if err := validate(req, &v.Volume); err != nil {
		return &wire.ValidateVolumeCapabilitiesResponse{Message: rpc.Clip(err.Error(), maxString)}, nil
	}
	return &wire.ValidateVolumeCapabilitiesResponse{Confirmed: &wire.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.VolumeContext, VolumeCapabilities: req.VolumeCapabilities, Parameters: req.Parameters}}, nil
}

// validate returns why a volume does not have the requested properties, nil if it has.
func validate(req *wire.ValidateVolumeCapabilitiesRequest, v *drivebay.Volume) error {
	for _, c := range req.VolumeCapabilities {
		u, err := parseUse(c)
		if err == nil {
			err = u.fits(v)
		}
		if err != nil {
			return err
		}
	}
	if len(req.MutableParameters) > 0 {
		return fmt.Errorf("mutable_parameters: %w", drivebay.ErrNoSupport)
	}
	if err := checkContext(req.VolumeContext); err != nil {
		return err
	}
	return sameClass(req.Parameters, v)
}

// sameClass compares parameters with those that a volume was made with. It compares the
// filesystem with the real one, because a capability may have overridden the parameter.
func sameClass(parameters map[string]string, v *drivebay.Volume) error {
	if len(parameters) == 0 {
		return nil
	}
	want, err := drivebay.ParseClass(parameters)
	if err != nil {
		return err
	}
	is, err := drivebay.ParseClass(v.Parameters)
	if err != nil {
		return err
	}
	if fs, given := parameters[drivebay.ParameterFSType]; given && v.HasFilesystem() && fs != v.FSType {
		return fmt.Errorf("volume %s: %w: the filesystem of the volume is %s", v.ID, drivebay.ErrInvalid, v.FSType)
	}
	want.FSType, is.FSType = "", ""
	if want != is {
		return fmt.Errorf("volume %s: %w: the volume was created with other parameters", v.ID, drivebay.ErrInvalid)
	}
	return nil
}
