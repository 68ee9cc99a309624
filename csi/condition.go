package csi

import (
	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Version 1.13 of the specification took VolumeCondition away, and reserved its
// numbers. Kubelets up to Kubernetes 1.36 and external-health-monitor 0.18 ask
// for nothing else, so it goes on: as a field that 1.13 does not know, with the
// numbers that csi.proto v1.12.0 gives it. Who knows it reads it, all others pass
// over it.
const (
	controllerVolumeCondition wire.ControllerServiceCapability_RPC_Type = 11
	nodeVolumeCondition       wire.NodeServiceCapability_RPC_Type       = 4

	conditionField    protowire.Number = 2 // of both messages VolumeStatus and of NodeGetVolumeStatsResponse
	conditionAbnormal protowire.Number = 1
	conditionMessage  protowire.Number = 2
)

// setCondition puts a condition into one of the three messages that had it. The
// general limit of 128 bytes for a string is one of 1.13, which has no such
// field; those who read it show it in an event, which has room for 1024.
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
