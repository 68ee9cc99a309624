package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

func (c *controller) ListVolumes(_ context.Context, req *wire.ListVolumesRequest) (*wire.ListVolumesResponse, error) {
	p, after, err := newPage(listVolumes, req.MaxEntries, req.StartingToken)
	if err != nil {
		return nil, err
	}
	set, err := c.complete()
	if err != nil {
		return nil, err
	}
	resp := &wire.ListVolumesResponse{}
	for _, v := range set.After(after) {
		entry := c.listEntry(v)
		if !p.takes(v.ID, entry) {
			break
		}
		resp.Entries = append(resp.Entries, entry)
	}
	resp.NextToken = p.next()
	return resp, nil
}

func (c *controller) listEntry(v *drivebay.VolumeView) *wire.ListVolumesResponse_Entry {
	status := &wire.ListVolumesResponse_VolumeStatus{PublishedNodeIds: c.publishedNodes(&v.Volume)}
	setCondition(status, v.Condition)
	return &wire.ListVolumesResponse_Entry{Volume: c.volumeAnswer(&v.Volume), Status: status}
}

func (c *controller) ControllerGetVolume(_ context.Context, req *wire.ControllerGetVolumeRequest) (*wire.ControllerGetVolumeResponse, error) {
	v, err := c.volume(req.VolumeId)
	if err != nil {
		return nil, err
	}
	status := &wire.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: c.publishedNodes(&v.Volume)}
	setCondition(status, v.Condition)
	return &wire.ControllerGetVolumeResponse{Volume: c.volumeAnswer(&v.Volume), Status: status}, nil
}
