package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type controller struct {
	wire.UnimplementedControllerServer
	*Server
	volumes ControllerVolumes
}

func newController(s *Server) *controller { return &controller{Server: s, volumes: s.opt.Volumes} }

func (c *controller) ControllerGetCapabilities(context.Context, *wire.ControllerGetCapabilitiesRequest) (*wire.ControllerGetCapabilitiesResponse, error) {
	resp := &wire.ControllerGetCapabilitiesResponse{}
	for _, kind := range granted(controllerCapabilities, c.level()) {
		resp.Capabilities = append(resp.Capabilities, &wire.ControllerServiceCapability{
			Type: &wire.ControllerServiceCapability_Rpc{Rpc: &wire.ControllerServiceCapability_RPC{Type: kind}}})
	}
	return resp, nil
}

func (c *controller) CreateVolume(ctx context.Context, req *wire.CreateVolumeRequest) (*wire.CreateVolumeResponse, error) {
	r, err := volumeRequest(req)
	if err != nil {
		return nil, err
	}
	if r.Source != (drivebay.Source{}) && c.level() < withSnapshots {
		return nil, fmt.Errorf("volume_content_source: %w: this machine has no snapshots and clones: they need drivebay.io/backing: thin, which needs LVM and device-mapper", drivebay.ErrNoSupport)
	}
	if err := c.reaches(req.AccessibilityRequirements); err != nil {
		return nil, c.unlessExists(req.Name, err)
	}
	v, err := c.volumes.CreateVolume(ctx, r)
	if err != nil {
		return nil, err
	}
	return &wire.CreateVolumeResponse{Volume: c.volumeAnswer(&v)}, nil
}

// unlessExists turns ErrNoSpace into ErrExists if a volume of this name exists already,
// on this node.
func (c *controller) unlessExists(name string, err error) error {
	there := slices.ContainsFunc(c.volumes.Volumes().Volumes, func(v *drivebay.VolumeView) bool { return v.Name == name })
	if errors.Is(err, drivebay.ErrNoSpace) && there {
		return fmt.Errorf("volume %q: %w: it is on node %s", name, drivebay.ErrExists, c.opt.NodeID)
	}
	return err
}

func (c *controller) DeleteVolume(ctx context.Context, req *wire.DeleteVolumeRequest) (*wire.DeleteVolumeResponse, error) {
	return &wire.DeleteVolumeResponse{}, c.volumes.DeleteVolume(ctx, req.VolumeId)
}

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

// usable reads a capability and checks that it fits the volume. A volume that is not in
// the newest set may be in the next one: the engine decides that.
func (s *Server) usable(id string, c *wire.VolumeCapability) (use, error) {
	u, err := parseUse(c)
	if err != nil {
		return u, err
	}
	if v, ok := s.opt.Volumes.Volumes().Get(id); ok {
		err = u.fits(&v.Volume)
	}
	return u, err
}

// GetCapacity returns 0 instead of an error if volumes of this kind cannot be made here:
// a scheduler asks whether this node is suitable at all.
func (c *controller) GetCapacity(ctx context.Context, req *wire.GetCapacityRequest) (*wire.GetCapacityResponse, error) {
	class, err := drivebay.ParseClass(req.Parameters)
	if err != nil {
		return nil, err
	}
	var has drivebay.Capacity
	_, _, err = parseUses(req.VolumeCapabilities)
	if err == nil && c.holds(req.AccessibleTopology) {
		has, err = c.volumes.Capacity(ctx, class)
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
