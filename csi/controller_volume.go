package csi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

func (c *controller) CreateVolume(ctx context.Context, req *wire.CreateVolumeRequest) (*wire.CreateVolumeResponse, error) {
	r, err := volumeRequest(req)
	if err != nil {
		return nil, err
	}
	if r.Source != (drivebay.Source{}) {
		if has, err := c.level(); err != nil {
			return nil, err
		} else if has < withSnapshots {
			return nil, fmt.Errorf("volume_content_source: %w: %s", drivebay.ErrNoSupport, c.whyNoSnapshots())
		}
	}
	nodes, err := c.reaches(req.AccessibilityRequirements)
	if err != nil {
		return nil, c.unlessExists(req.Name, err)
	}
	if c.opt.Cluster != nil && req.AccessibilityRequirements != nil {
		r.Nodes = nodes
	}
	v, err := c.volumes.CreateVolume(ctx, r)
	if err != nil {
		return nil, err
	}
	return &wire.CreateVolumeResponse{Volume: c.volumeAnswer(&v)}, nil
}

// unlessExists turns ErrNoSpace into ErrExists if another node already has a volume of this name.
func (c *controller) unlessExists(name string, err error) error {
	all := c.volumes.Volumes().Volumes
	i := slices.IndexFunc(all, func(v *drivebay.VolumeView) bool { return v.Name == name })
	if errors.Is(err, drivebay.ErrNoSpace) && i >= 0 {
		return fmt.Errorf("volume %q: %w: on node %s", name, drivebay.ErrExists, cmp.Or(all[i].Node, c.opt.NodeID))
	}
	return err
}

func (c *controller) DeleteVolume(ctx context.Context, req *wire.DeleteVolumeRequest) (*wire.DeleteVolumeResponse, error) {
	return &wire.DeleteVolumeResponse{}, c.volumes.DeleteVolume(ctx, req.VolumeId)
}
