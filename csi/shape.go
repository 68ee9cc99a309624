package csi

import (
	"slices"
	"sync"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	pb "google.golang.org/protobuf/types/descriptorpb"
)

// shape returns csi.proto with VolumeCondition added again, so that Call prints the
// field: a field without a name is not printed.
var shape = sync.OnceValues(func() (protoreflect.FileDescriptor, error) {
	file := protodesc.ToFileDescriptorProto(wire.File_csi_proto)
	add := func(m *pb.DescriptorProto, name string, number protoreflect.FieldNumber, kind pb.FieldDescriptorProto_Type) *pb.FieldDescriptorProto {
		f := &pb.FieldDescriptorProto{Name: &name, Number: proto.Int32(int32(number)), Type: &kind, Label: pb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		m.Field, m.ReservedRange = append(m.Field, f), nil
		return f
	}
	condition := &pb.DescriptorProto{Name: proto.String("VolumeCondition")}
	add(condition, "abnormal", conditionAbnormal, pb.FieldDescriptorProto_TYPE_BOOL)
	add(condition, "message", conditionMessage, pb.FieldDescriptorProto_TYPE_STRING)
	file.MessageType = append(file.MessageType, condition)

	for _, path := range [][]string{{"ListVolumesResponse", "VolumeStatus"}, {"ControllerGetVolumeResponse", "VolumeStatus"}, {"NodeGetVolumeStatsResponse"}} {
		f := add(messageAt(file.MessageType, path...), "volume_condition", conditionField, pb.FieldDescriptorProto_TYPE_MESSAGE)
		f.TypeName = proto.String("." + file.GetPackage() + ".VolumeCondition")
	}
	for in, number := range map[string]int32{"ControllerServiceCapability": int32(controllerVolumeCondition), "NodeServiceCapability": int32(nodeVolumeCondition)} {
		e := messageAt(file.MessageType, in, "RPC").EnumType[0]
		e.Value = append(e.Value, &pb.EnumValueDescriptorProto{Name: proto.String("VOLUME_CONDITION"), Number: &number})
		e.ReservedRange = nil
	}
	return protodesc.NewFile(file, protoregistry.GlobalFiles)
})

// messageAt returns a nested message by its path. It panics if the message has no such field.
func messageAt(all []*pb.DescriptorProto, path ...string) *pb.DescriptorProto {
	m := all[slices.IndexFunc(all, func(m *pb.DescriptorProto) bool { return m.GetName() == path[0] })]
	if len(path) == 1 {
		return m
	}
	return messageAt(m.NestedType, path[1:]...)
}
