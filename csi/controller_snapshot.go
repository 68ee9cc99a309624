package csi

import (
	"context"
	"fmt"
	"slices"
	"sort"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

func (c *controller) CreateSnapshot(ctx context.Context, req *wire.CreateSnapshotRequest) (*wire.CreateSnapshotResponse, error) {
	if err := snapshotParameters(req.Parameters); err != nil {
		return nil, err
	}
	if _, err := c.reaches(req.AccessibilityRequirements); err != nil {
		return nil, err
	}
	snap, err := c.volumes.CreateSnapshot(ctx, req.Name, req.SourceVolumeId)
	if err != nil {
		return nil, err
	}
	return &wire.CreateSnapshotResponse{Snapshot: c.snapshotAnswer(&snap)}, nil
}

func (c *controller) DeleteSnapshot(ctx context.Context, req *wire.DeleteSnapshotRequest) (*wire.DeleteSnapshotResponse, error) {
	return &wire.DeleteSnapshotResponse{}, c.volumes.DeleteSnapshot(ctx, req.SnapshotId)
}

func (c *controller) GetSnapshot(_ context.Context, req *wire.GetSnapshotRequest) (*wire.GetSnapshotResponse, error) {
	set, err := c.set()
	if err != nil {
		return nil, err
	}
	if snap, ok := set.GetSnapshot(req.SnapshotId); ok {
		return &wire.GetSnapshotResponse{Snapshot: c.snapshotAnswer(snap)}, nil
	}
	if _, is := set.Get(req.SnapshotId); is {
		return nil, fmt.Errorf("snapshot %q: %w: this is the id of a volume", req.SnapshotId, drivebay.ErrNotFound)
	}
	return nil, c.volumes.Missing(req.SnapshotId)
}

func (c *controller) ListSnapshots(_ context.Context, req *wire.ListSnapshotsRequest) (*wire.ListSnapshotsResponse, error) {
	p, after, err := newPage(listSnapshots, req.MaxEntries, req.StartingToken)
	if err != nil {
		return nil, err
	}
	set, err := c.complete()
	if err != nil {
		return nil, err
	}
	resp := &wire.ListSnapshotsResponse{}
	for _, snap := range snapshotsAfter(set, after, req.SnapshotId) {
		if req.SourceVolumeId != "" && snap.Source != req.SourceVolumeId {
			continue
		}
		entry := &wire.ListSnapshotsResponse_Entry{Snapshot: c.snapshotAnswer(&snap)}
		if !p.takes(snap.ID, entry) {
			break
		}
		resp.Entries = append(resp.Entries, entry)
	}
	resp.NextToken = p.next()
	return resp, nil
}

// snapshotsAfter returns the snapshots whose ids come after one; if only is set, at most
// the snapshot with that id.
func snapshotsAfter(set *drivebay.VolumeSet, after, only string) []drivebay.VolumeSnapshot {
	from := sort.Search(len(set.Snapshots), func(i int) bool { return set.Snapshots[i].ID > after })
	all := set.Snapshots[from:]
	if only == "" {
		return all
	}
	i := slices.IndexFunc(all, func(s drivebay.VolumeSnapshot) bool { return s.ID == only })
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}
