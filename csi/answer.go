package csi

import (
	"cmp"
	"math"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// signed converts a number of bytes to the int64 of CSI messages.
func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func (s *Server) volumeAnswer(v *drivebay.Volume) *wire.Volume {
	out := &wire.Volume{VolumeId: v.ID, CapacityBytes: signed(v.Size), AccessibleTopology: []*wire.Topology{topologyOf(cmp.Or(v.Node, s.opt.NodeID))}}
	switch {
	case v.Source.Snapshot != "":
		out.ContentSource = &wire.VolumeContentSource{Type: &wire.VolumeContentSource_Snapshot{
			Snapshot: &wire.VolumeContentSource_SnapshotSource{SnapshotId: v.Source.Snapshot}}}
	case v.Source.Volume != "":
		out.ContentSource = &wire.VolumeContentSource{Type: &wire.VolumeContentSource_Volume{
			Volume: &wire.VolumeContentSource_VolumeSource{VolumeId: v.Source.Volume}}}
	}
	return out
}

// publishedNodes returns the node on which a volume is mounted, if any.
func (s *Server) publishedNodes(v *drivebay.Volume) []string {
	if len(v.Publications) == 0 {
		return nil
	}
	return []string{cmp.Or(v.Node, s.opt.NodeID)}
}

func (s *Server) snapshotAnswer(v *drivebay.VolumeSnapshot) *wire.Snapshot {
	return &wire.Snapshot{SnapshotId: v.ID, SourceVolumeId: v.Source, SizeBytes: signed(v.Size), ReadyToUse: v.Unavailable == "",
		CreationTime: timestamppb.New(v.Created), AccessibleTopology: []*wire.Topology{topologyOf(cmp.Or(v.Node, s.opt.NodeID))}}
}

// healthAnswer converts a condition to the message of CSI 1.13. The general limit for strings
// applies to reason and message, so messages have their short form. The API and
// `drivebay explain` show the full messages.
func healthAnswer(id string, c drivebay.Condition) *wire.VolumeHealth {
	out := &wire.VolumeHealth{VolumeId: id}
	for _, f := range c {
		out.HealthStatuses = append(out.HealthStatuses, &wire.VolumeHealth_VolumeHealthEntry{
			Status: wire.VolumeHealthErrorType(f.Severity), Reason: rpc.Clip(f.Reason, maxString), Message: f.Short()})
	}
	return out
}

func usageAnswer(s drivebay.VolumeStats) []*wire.VolumeUsage {
	// The bytes are always present: the kubelet discards an answer without usage, and
	// the condition with it (pkg/volume/csi/csi_client.go, NodeGetVolumeStats).
	out := []*wire.VolumeUsage{amountAnswer(wire.VolumeUsage_BYTES, s.Bytes)}
	if s.Inodes != nil {
		out = append(out, amountAnswer(wire.VolumeUsage_INODES, *s.Inodes))
	}
	return out
}

func amountAnswer(unit wire.VolumeUsage_Unit, a drivebay.Amount) *wire.VolumeUsage {
	return &wire.VolumeUsage{Unit: unit, Total: signed(a.Total), Used: signed(a.Used), Available: signed(a.Available)}
}
