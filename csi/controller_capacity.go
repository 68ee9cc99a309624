package csi

import (
	"context"
	"errors"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// GetCapacity returns 0 instead of an error if volumes of this kind cannot be created here: a
// scheduler asks every node whether it is suitable.
func (c *controller) GetCapacity(ctx context.Context, req *wire.GetCapacityRequest) (*wire.GetCapacityResponse, error) {
	class, err := drivebay.ParseClass(req.Parameters)
	if err != nil {
		return nil, err
	}
	places, err := c.places()
	if err != nil {
		return nil, err
	}
	var has drivebay.Capacity
	block, fsType, err := parseUses(req.VolumeCapabilities)
	switch { // as CreateVolume has it
	case block:
		class.FSType = ""
	case fsType != "":
		class.FSType = fsType
	}
	if inside := places.inside(req.AccessibleTopology); err == nil && len(inside) > 0 {
		has, err = c.capacity(ctx, class, inside)
	}
	if err != nil && !errors.Is(err, drivebay.ErrNoSupport) {
		return nil, err
	}
	resp := &wire.GetCapacityResponse{AvailableCapacity: signed(has.Available), MaximumVolumeSize: wrapperspb.Int64(signed(has.Largest))}
	if has.Smallest > 0 {
		resp.MinimumVolumeSize = wrapperspb.Int64(signed(has.Smallest))
	}
	return resp, nil
}

func (c *controller) capacity(ctx context.Context, class drivebay.Class, nodes []string) (drivebay.Capacity, error) {
	if c.opt.Cluster != nil {
		return c.opt.Cluster.CapacityOn(ctx, class, nodes)
	}
	return c.volumes.Capacity(ctx, class)
}
