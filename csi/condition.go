package csi

import (
	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Version 1.13 of the specification removed VolumeCondition and reserved its numbers.
// Kubelets up to Kubernetes 1.36 and external-health-monitor 0.18 read no other field. So
// the answers still contain VolumeCondition, with the numbers of csi.proto v1.12.0. Clients of
// version 1.13 skip the unknown field.
const (
	controllerVolumeCondition wire.ControllerServiceCapability_RPC_Type = 11
	nodeVolumeCondition       wire.NodeServiceCapability_RPC_Type       = 4

	conditionField    protowire.Number = 2 // in both messages VolumeStatus and in NodeGetVolumeStatsResponse
	conditionAbnormal protowire.Number = 1
	conditionMessage  protowire.Number = 2
)

// setCondition puts a condition into one of the three messages that had it. The limit of
// 128 bytes for a string belongs to 1.13, which has no such field. Clients show the
// message in an event, which has room for 1024 bytes.
func setCondition(m proto.Message, c drivebay.Condition) {
	var b []byte
	if c.Abnormal() {
		b = protowire.AppendTag(b, conditionAbnormal, protowire.VarintType)
		b = protowire.AppendVarint(b, protowire.EncodeBool(true))
	}
	b = protowire.AppendTag(b, conditionMessage, protowire.BytesType)
	b = protowire.AppendString(b, c.Message())

	out := protowire.AppendTag(nil, conditionField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(out, b))
}
