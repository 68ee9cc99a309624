package csi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func answerTo(t testing.TB, m protoreflect.MethodDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

// The life of a volume, as answers tell it.
func TestAnswers(t *testing.T) {
	m := newMemory()
	_, _, conn, _ := rig(t, m)
	must := func(req proto.Message) proto.Message {
		t.Helper()
		resp, err := ask(t, conn, req)
		if err != nil {
			t.Fatalf("%T: %v", req, err)
		}
		return resp
	}
	from := &wire.VolumeContentSource{Type: &wire.VolumeContentSource_Snapshot{Snapshot: &wire.VolumeContentSource_SnapshotSource{}}}
	v := must(create).(*wire.CreateVolumeResponse).Volume
	if v.CapacityBytes != 1<<30 || v.AccessibleTopology[0].Segments[TopologyKey] != "node-1" || v.ContentSource != nil || len(v.VolumeContext) > 0 {
		t.Errorf("created: %v", v)
	}
	snap := must(&wire.CreateSnapshotRequest{Name: "s", SourceVolumeId: v.VolumeId}).(*wire.CreateSnapshotResponse).Snapshot
	if !snap.ReadyToUse || snap.SourceVolumeId != v.VolumeId || snap.CreationTime.AsTime().Unix() != 1e9 || snap.AccessibleTopology[0].Segments[TopologyKey] != "node-1" {
		t.Errorf("snapshot: %v", snap)
	}
	if _, err := ask(t, conn, &wire.GetSnapshotRequest{SnapshotId: v.VolumeId}); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "id of a volume") {
		t.Errorf("a volume as a snapshot: %v", err)
	}
	from.GetSnapshot().SnapshotId = snap.SnapshotId
	copied := must(with(create, func(r *wire.CreateVolumeRequest) { r.Name, r.VolumeContentSource = "copy", from })).(*wire.CreateVolumeResponse).Volume
	if !proto.Equal(copied.ContentSource, from) {
		t.Errorf("a volume from a snapshot begins with %v", copied.ContentSource)
	}
	get := func() *wire.ControllerGetVolumeResponse {
		return must(&wire.ControllerGetVolumeRequest{VolumeId: v.VolumeId}).(*wire.ControllerGetVolumeResponse)
	}
	if r := get(); len(r.Status.PublishedNodeIds) != 0 || !proto.Equal(r.Volume, v) {
		t.Errorf("mounted nowhere: %v", r)
	}
	must(with(stage, func(r *wire.NodeStageVolumeRequest) {
		r.VolumeId, r.VolumeCapability = v.VolumeId, mount(reader, "xfs")
	}))
	must(with(publish, func(r *wire.NodePublishVolumeRequest) {
		r.VolumeId, r.VolumeCapability = v.VolumeId, mount(reader, "xfs")
	}))
	if r := get(); len(r.Status.PublishedNodeIds) != 1 || r.Status.PublishedNodeIds[0] != "node-1" {
		t.Errorf("published: %v", r)
	}
	if w, _ := m.Volumes().Get(v.VolumeId); !w.Publications[1].ReadOnly {
		t.Error("a reader got a volume that can be written to")
	}
	grown := must(&wire.ControllerExpandVolumeRequest{VolumeId: v.VolumeId, CapacityRange: &wire.CapacityRange{RequiredBytes: 5 << 30}}).(*wire.ControllerExpandVolumeResponse)
	if grown.CapacityBytes != 5<<30 || !grown.NodeExpansionRequired {
		t.Errorf("expanded: %v", grown)
	}
	usage := must(&wire.NodeGetVolumeStatsRequest{VolumeId: v.VolumeId, VolumePath: "/target"}).(*wire.NodeGetVolumeStatsResponse).Usage
	if len(usage) != 1 || usage[0].Unit != wire.VolumeUsage_BYTES || usage[0].Total != 5<<30 || usage[0].Used != 1 {
		t.Errorf("usage: %v", usage)
	}
}

func TestGetCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		req  *wire.GetCapacityRequest
		want int64
	}{
		"nothing said":    {&wire.GetCapacityRequest{}, memorySize},
		"here":            {&wire.GetCapacityRequest{AccessibleTopology: topology(TopologyKey, "node-1")}, memorySize},
		"elsewhere":       {&wire.GetCapacityRequest{AccessibleTopology: topology(TopologyKey, "node-2")}, 0},
		"of no kind here": {&wire.GetCapacityRequest{Parameters: map[string]string{drivebay.ParameterBacking: "mirror"}}, 0},
		"of no volume":    {&wire.GetCapacityRequest{VolumeCapabilities: uses(mount(wire.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, ""))}, 0},
	} {
		_, _, conn, _ := rig(t, newMemory())
		got, err := wire.NewControllerClient(conn).GetCapacity(t.Context(), c.req)
		if err != nil || got.AvailableCapacity != c.want || got.MaximumVolumeSize.GetValue() != c.want || got.MaximumVolumeSize == nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestSnapshotReady: a snapshot that cannot be used now is not ready to use.
func TestSnapshotReady(t *testing.T) {
	for why, want := range map[string]bool{"": true, "drive d is OFFLINE": false} {
		if got := new(Server).snapshotAnswer(&drivebay.VolumeSnapshot{ID: "s", Unavailable: why}).ReadyToUse; got != want {
			t.Errorf("%q: %v", why, got)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wire.ValidateVolumeCapabilitiesRequest)
		ok     bool
	}{
		"as it is":       {func(*wire.ValidateVolumeCapabilitiesRequest) {}, true},
		"its filesystem": {func(r *wire.ValidateVolumeCapabilitiesRequest) { r.VolumeCapabilities = uses(mount(reader, "ext4")) }, true},
		"another":        {func(r *wire.ValidateVolumeCapabilitiesRequest) { r.VolumeCapabilities = uses(mount(writer, "xfs")) }, false},
		"one of two": {func(r *wire.ValidateVolumeCapabilitiesRequest) {
			r.VolumeCapabilities = uses(mount(writer, ""), block(writer))
		}, false},
		"many nodes": {func(r *wire.ValidateVolumeCapabilitiesRequest) {
			r.VolumeCapabilities = uses(mount(wire.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER, ""))
		}, false},
		"context": {func(r *wire.ValidateVolumeCapabilitiesRequest) { r.VolumeContext = map[string]string{"a": "b"} }, false},
		"mutable": {func(r *wire.ValidateVolumeCapabilitiesRequest) { r.MutableParameters = map[string]string{"a": "b"} }, false},
		"its parameters": {func(r *wire.ValidateVolumeCapabilitiesRequest) {
			r.Parameters = map[string]string{drivebay.ParameterBacking: "lvm", "csi.storage.k8s.io/fstype": "ext4"}
		}, true},
		"another backing": {func(r *wire.ValidateVolumeCapabilitiesRequest) {
			r.Parameters = map[string]string{drivebay.ParameterBacking: "thin"}
		}, false},
		"another fstype": {func(r *wire.ValidateVolumeCapabilitiesRequest) {
			r.Parameters = map[string]string{drivebay.ParameterBacking: "lvm", "csi.storage.k8s.io/fstype": "xfs"}
		}, false},
		"no such": {func(r *wire.ValidateVolumeCapabilitiesRequest) { r.Parameters = map[string]string{"colour": "red"} }, false},
	} {
		m := there()
		m.Volumes().Volumes[1].Parameters = map[string]string{drivebay.ParameterBacking: "lvm"}
		_, _, conn, _ := rig(t, m)
		req := with(validity, c.change)
		r, err := wire.NewControllerClient(conn).ValidateVolumeCapabilities(t.Context(), req)
		if err != nil || (r.Confirmed != nil) != c.ok || (r.Message == "") != c.ok || len(r.Message) > maxString {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		if c.ok && len(r.Confirmed.GetVolumeCapabilities()) != len(req.VolumeCapabilities) {
			t.Errorf("%s: confirmed are %v", name, r.Confirmed)
		}
	}
}

// What an engine says goes out with the code of the dictionary, and without what
// the request brought in confidence.
func TestErrors(t *testing.T) {
	m := there()
	_, _, conn, log := rig(t, m)
	for _, c := range errorCodes {
		err := fmt.Errorf("volume x: %w: no luck with hunter2, password=geheim, geheim", c.Err)
		m.fails.Store(&err)
		want := c.Code
		if c.Err == drivebay.ErrNoSupport {
			want = codes.FailedPrecondition
		}
		req := with(stage, func(r *wire.NodeStageVolumeRequest) {
			r.Secrets = map[string]string{"key": "hunter2", "id": "x"}
			r.VolumeCapability = mount(writer, "", "password=geheim", "ro")
		})
		_, got := ask(t, conn, req)
		text := status.Convert(got).Message()
		if status.Code(got) != want || !strings.Contains(text, "volume x") || !strings.Contains(text, "no luck") {
			t.Errorf("%v is %v, want %v", c.Err, got, want)
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, "geheim") {
			t.Errorf("it tells what it should not: %s", text)
		}
	}
	err := errors.New("hunter2 broke the bay")
	m.fails.Store(&err)
	if _, got := ask(t, conn, with(stage, func(r *wire.NodeStageVolumeRequest) { r.Secrets = map[string]string{"k": "hunter2"} })); status.Code(got) != codes.Internal {
		t.Errorf("an unknown error is %v", got)
	}
	if text := log.String(); !strings.Contains(text, "broke the bay") || strings.Contains(text, "hunter2") || strings.Contains(text, "geheim") {
		t.Errorf("the log: %s", text)
	}
}

func TestNotReady(t *testing.T) {
	m := newMemory()
	m.set.Store(&drivebay.VolumeSet{})
	e, _, conn, _ := rig(t, m)
	e.set(drivebay.Snapshot{Seq: 1})
	if r, err := wire.NewIdentityClient(conn).Probe(t.Context(), &wire.ProbeRequest{}); err != nil || r.Ready.GetValue() {
		t.Errorf("before the volumes are known: %v, %v", r, err)
	}
	for _, req := range []proto.Message{&wire.ListVolumesRequest{}, &wire.ControllerGetVolumeRequest{VolumeId: "a"}, &wire.ListSnapshotsRequest{}, &wire.GetSnapshotRequest{SnapshotId: "a"}} {
		if _, err := ask(t, conn, req); status.Code(err) != codes.Unavailable {
			t.Errorf("%T: %v", req, err)
		}
	}
}

func TestSegment(t *testing.T) {
	for node, same := range map[string]bool{"node-1": true, "a": true, strings.Repeat("n", 63): true, strings.Repeat("n", 64): false, "-a": false, "a b": false, "": false, "ü": false} {
		if got := segment(node); (got == node) != same || !legalSegment.MatchString(got) {
			t.Errorf("segment of %q: %q", node, got)
		}
	}
}
