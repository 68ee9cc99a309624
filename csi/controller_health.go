package csi

import (
	"context"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
)

func (c *controller) ControllerGetVolumeHealth(_ context.Context, req *wire.ControllerGetVolumeHealthRequest) (*wire.ControllerGetVolumeHealthResponse, error) {
	v, err := c.volume(req.VolumeId)
	if err != nil {
		return nil, err
	}
	return &wire.ControllerGetVolumeHealthResponse{VolumeHealth: healthAnswer(v.ID, v.Condition)}, nil
}

// ControllerListVolumeHealth returns only volumes with findings.
func (c *controller) ControllerListVolumeHealth(_ context.Context, req *wire.ControllerListVolumeHealthRequest) (*wire.ControllerListVolumeHealthResponse, error) {
	p, after, err := newPage(listHealth, req.MaxEntries, req.StartingToken)
	if err != nil {
		return nil, err
	}
	set, err := c.complete()
	if err != nil {
		return nil, err
	}
	resp := &wire.ControllerListVolumeHealthResponse{}
	for _, v := range set.After(after) {
		if !v.Condition.Abnormal() {
			continue
		}
		entry := healthAnswer(v.ID, v.Condition)
		if !p.takes(v.ID, entry) {
			break
		}
		resp.Entries = append(resp.Entries, entry)
	}
	resp.NextToken = p.next()
	return resp, nil
}
