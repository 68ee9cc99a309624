package csi

import (
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	pb "google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// old are the messages that had a VolumeCondition, as csi.proto v1.12.0 has them,
// with no more fields than a reader of conditions looks at.
func old(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	type fields = []*pb.FieldDescriptorProto
	field := func(number int32, name, kind string, many bool) *pb.FieldDescriptorProto {
		f := &pb.FieldDescriptorProto{Name: &name, Number: &number, Label: pb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if many {
			f.Label = pb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		switch kind {
		case "bool":
			f.Type = pb.FieldDescriptorProto_TYPE_BOOL.Enum()
		case "string":
			f.Type = pb.FieldDescriptorProto_TYPE_STRING.Enum()
		default:
			f.Type, f.TypeName = pb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".old.v1."+kind)
		}
		return f
	}
	message := func(name string, f fields, nested ...*pb.DescriptorProto) *pb.DescriptorProto {
		return &pb.DescriptorProto{Name: &name, Field: f, NestedType: nested}
	}
	status := func() *pb.DescriptorProto {
		return message("VolumeStatus", fields{field(1, "published_node_ids", "string", true), field(2, "volume_condition", "VolumeCondition", false)})
	}
	file, err := protodesc.NewFile(&pb.FileDescriptorProto{Name: proto.String("old.proto"), Package: proto.String("old.v1"), Syntax: proto.String("proto3"),
		MessageType: []*pb.DescriptorProto{
			message("VolumeCondition", fields{field(1, "abnormal", "bool", false), field(2, "message", "string", false)}),
			message("Volume", fields{field(2, "volume_id", "string", false)}),
			message("ListVolumesResponse", fields{field(1, "entries", "ListVolumesResponse.Entry", true)}, status(),
				message("Entry", fields{field(1, "volume", "Volume", false), field(2, "status", "ListVolumesResponse.VolumeStatus", false)})),
			message("ControllerGetVolumeResponse", fields{field(1, "volume", "Volume", false), field(2, "status", "ControllerGetVolumeResponse.VolumeStatus", false)}, status()),
			message("NodeGetVolumeStatsResponse", fields{field(2, "volume_condition", "VolumeCondition", false)}),
		}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// oldWord is what an older client reads from an answer; path leads to the field.
func oldWord(t *testing.T, conn *grpc.ClientConn, method string, req proto.Message, path ...protoreflect.Name) (abnormal bool, message string) {
	t.Helper()
	m := dynamicpb.NewMessage(old(t).Messages().ByName(protoreflect.Name(callOf(req) + "Response")))
	if err := conn.Invoke(t.Context(), method, req, m); err != nil {
		t.Fatal(err)
	}
	at := protoreflect.Message(m)
	for _, name := range path {
		f := at.Descriptor().Fields().ByName(name)
		if !at.Has(f) {
			t.Fatalf("%s: an older client finds no %s", method, name)
		}
		if f.IsList() {
			at = at.Get(f).List().Get(0).Message()
		} else {
			at = at.Get(f).Message()
		}
	}
	fields := at.Descriptor().Fields()
	return at.Get(fields.ByName("abnormal")).Bool(), at.Get(fields.ByName("message")).String()
}

// oldWords are the three answers of the wire of 1.12.
func oldWords(t *testing.T, conn *grpc.ClientConn) map[string]string {
	t.Helper()
	out := map[string]string{}
	for method, ask := range map[string]struct {
		req  proto.Message
		path []protoreflect.Name
	}{
		"/csi.v1.Controller/ListVolumes":         {&wire.ListVolumesRequest{}, []protoreflect.Name{"entries", "status", "volume_condition"}},
		"/csi.v1.Controller/ControllerGetVolume": {&wire.ControllerGetVolumeRequest{VolumeId: "there"}, []protoreflect.Name{"status", "volume_condition"}},
		"/csi.v1.Node/NodeGetVolumeStats":        {stats, []protoreflect.Name{"volume_condition"}},
	} {
		abnormal, message := oldWord(t, conn, method, ask.req, ask.path...)
		out[method] = map[bool]string{true: "abnormal: ", false: "normal: "}[abnormal] + message
	}
	return out
}

// newWords are the three answers of the wire of 1.13 about one volume.
func newWords(t *testing.T, conn *grpc.ClientConn) map[string]*wire.VolumeHealth {
	t.Helper()
	get, err := wire.NewControllerClient(conn).ControllerGetVolumeHealth(t.Context(), &wire.ControllerGetVolumeHealthRequest{VolumeId: "there"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := wire.NewControllerClient(conn).ControllerListVolumeHealth(t.Context(), &wire.ControllerListVolumeHealthRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*wire.VolumeHealth{"ControllerGetVolumeHealth": get.VolumeHealth, "ControllerListVolumeHealth": {VolumeId: "there"}}
	for _, h := range list.Entries {
		out["ControllerListVolumeHealth"] = h
	}
	for _, path := range []string{"", "/target", "/never"} {
		node, err := wire.NewNodeClient(conn).NodeGetVolumeHealth(t.Context(), &wire.NodeGetVolumeHealthRequest{VolumeId: "there", VolumePublishPath: path})
		if err != nil {
			t.Fatal(err)
		}
		out["NodeGetVolumeHealth "+path] = node.VolumeHealth
	}
	return out
}

// Both wires tell the same of a volume at the same time.
func TestBothWires(t *testing.T) {
	long := "the disk (serial S1, bay 7) " + strings.Repeat("ß", 500)
	m := newMemory(there().Volumes().Volumes[1])
	_, _, conn, _ := rig(t, m)
	for name, c := range map[string]struct {
		condition drivebay.Condition
		want      string
	}{
		"well": {nil, "normal: no fault is known"},
		"ill": {drivebay.Condition{{Severity: drivebay.SeverityDataLoss, Reason: "FilesystemCorruption", Message: "short"},
			{Severity: drivebay.SeverityInaccessible, Reason: "DiskFailure", Message: long}, {Severity: drivebay.SeverityDegraded, Reason: "DiskDegrading", Message: "x"}},
			"abnormal: FilesystemCorruption: short Also: DiskFailure, DiskDegrading"},
		"long": {drivebay.Condition{{Severity: drivebay.SeverityDegraded, Reason: "DiskFailure", Message: long[:1000]}}, "abnormal: DiskFailure: " + long[:1000]},
	} {
		if err := m.changeVolume("there", func(v *drivebay.VolumeView) error { v.Condition = c.condition; return nil }); err != nil {
			t.Fatal(err)
		}
		for method, got := range oldWords(t, conn) {
			if got != c.want {
				t.Errorf("%s: %s tells %q, want %q", name, method, got, c.want)
			}
		}
		for call, got := range newWords(t, conn) {
			if got.VolumeId != "there" || len(got.HealthStatuses) != len(c.condition) {
				t.Errorf("%s: %s tells %v", name, call, got)
				continue
			}
			for i, h := range got.HealthStatuses {
				f := c.condition[i]
				if h.Status.String() != f.Severity.String() || h.Reason != f.Reason || len(h.Message) > maxString || h.Message != f.Short() {
					t.Errorf("%s: %s tells %v of %v", name, call, h, f)
				}
			}
		}
	}
}

// The numbers of the old wire are still free in the new one, and people see what
// is behind them.
func TestConditionNumbers(t *testing.T) {
	for _, m := range []proto.Message{&wire.ListVolumesResponse_VolumeStatus{}, &wire.ControllerGetVolumeResponse_VolumeStatus{}, &wire.NodeGetVolumeStatsResponse{}} {
		if !m.ProtoReflect().Descriptor().ReservedRanges().Has(conditionField) {
			t.Errorf("%T: field %d is not reserved", m, conditionField)
		}
	}
	if !controllerVolumeCondition.Descriptor().ReservedRanges().Has(11) || !nodeVolumeCondition.Descriptor().ReservedRanges().Has(4) {
		t.Error("the capabilities' numbers are not reserved")
	}
	_, endpoint, _, _ := rig(t, there())
	for call, want := range map[string]string{"ListVolumes": `"volumeCondition"`, "ControllerGetCapabilities": `"VOLUME_CONDITION"`, "NodeGetCapabilities": `"VOLUME_CONDITION"`} {
		if out, err := Call(t.Context(), endpoint, call, ""); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %s, %v", call, out, err)
		}
	}
}
