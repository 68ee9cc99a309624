package csi

import (
	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// level is what a machine must have for a call to be available.
type level uint8

const (
	withDrives    level = iota // drives that can be listed
	withVolumes                // also a volume engine
	withSnapshots              // also snapshots
)

// pluginLevel returns what every machine of the plugin has. It runs no program.
func (s *Server) pluginLevel() level {
	if s.sets() == nil {
		return withDrives
	}
	return withVolumes
}

// level returns what this machine has, an error while that is not known. It may run a program: a call for which pluginLevel
// decides does not wait for it.
func (s *Server) level() (level, error) {
	v := s.sets()
	if v == nil {
		return withDrives, nil
	}
	switch has := v.Capabilities(); {
	case has.Snapshots:
		return withSnapshots, nil
	case has.Unknown:
		return withVolumes, status.Error(codes.Unavailable, "whether this machine has snapshots and clones is not known yet: LVM does not answer; retry later")
	}
	return withVolumes, nil
}

// implemented holds the implemented calls and what they need. The guard refuses a call
// that is not in it, or that needs more than the machine has.
var implemented = map[string]level{
	"GetPluginInfo":         withDrives,
	"GetPluginCapabilities": withDrives,
	"Probe":                 withDrives,

	"ControllerGetCapabilities":  withVolumes,
	"CreateVolume":               withVolumes,
	"DeleteVolume":               withVolumes,
	"ValidateVolumeCapabilities": withVolumes,
	"ListVolumes":                withVolumes,
	"ControllerGetVolume":        withVolumes,
	"GetCapacity":                withVolumes,
	"ControllerExpandVolume":     withVolumes,
	"ControllerGetVolumeHealth":  withVolumes,
	"ControllerListVolumeHealth": withVolumes,
	"CreateSnapshot":             withSnapshots,
	"DeleteSnapshot":             withSnapshots,
	"ListSnapshots":              withSnapshots,
	"GetSnapshot":                withSnapshots,

	"NodeGetCapabilities":  withDrives,
	"NodeGetInfo":          withDrives,
	"NodeGetStorageHealth": withDrives,
	"NodeStageVolume":      withVolumes,
	"NodeUnstageVolume":    withVolumes,
	"NodePublishVolume":    withVolumes,
	"NodeUnpublishVolume":  withVolumes,
	"NodeGetVolumeStats":   withVolumes,
	"NodeExpandVolume":     withVolumes,
	"NodeGetVolumeHealth":  withVolumes,
}

// capability is a CSI capability that is advertised if the machine has what it needs. A
// test calls every RPC and compares the results with these lists.
type capability[T any] struct {
	kind  T
	needs level
}

func granted[T any](all []capability[T], has level) []T {
	var out []T
	for _, c := range all {
		if has >= c.needs {
			out = append(out, c.kind)
		}
	}
	return out
}

// serviceCapabilities includes the topology because a volume is accessible from one node only.
// All instances of a version must have the same plugin capabilities, whatever their machines have
// (csi.proto, GetPluginCapabilities; a daemon on a recording has no volumes and is not such an
// instance). For snapshots the plugin capabilities promise only the topology.
var serviceCapabilities = []capability[wire.PluginCapability_Service_Type]{
	{wire.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS, withDrives},
	{wire.PluginCapability_Service_CONTROLLER_SERVICE, withVolumes},
	{wire.PluginCapability_Service_SNAPSHOT_ACCESSIBILITY_CONSTRAINTS, withVolumes},
}

var expansionCapabilities = []capability[wire.PluginCapability_VolumeExpansion_Type]{
	{wire.PluginCapability_VolumeExpansion_ONLINE, withVolumes},
}

// controllerCapabilities lacks LIST_VOLUMES_PUBLISHED_NODES, although answers contain the nodes:
// it would promise ControllerPublishVolume.
var controllerCapabilities = []capability[wire.ControllerServiceCapability_RPC_Type]{
	{wire.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, withVolumes},
	{wire.ControllerServiceCapability_RPC_LIST_VOLUMES, withVolumes},
	{wire.ControllerServiceCapability_RPC_GET_CAPACITY, withVolumes},
	{wire.ControllerServiceCapability_RPC_EXPAND_VOLUME, withVolumes},
	{wire.ControllerServiceCapability_RPC_GET_VOLUME, withVolumes},
	{wire.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, withVolumes},
	{wire.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH, withVolumes},
	{wire.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH, withVolumes},
	{controllerVolumeCondition, withVolumes},
	{wire.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, withSnapshots},
	{wire.ControllerServiceCapability_RPC_LIST_SNAPSHOTS, withSnapshots},
	{wire.ControllerServiceCapability_RPC_GET_SNAPSHOT, withSnapshots},
	{wire.ControllerServiceCapability_RPC_CLONE_VOLUME, withSnapshots},
}

var nodeCapabilities = []capability[wire.NodeServiceCapability_RPC_Type]{
	{wire.NodeServiceCapability_RPC_GET_STORAGE_HEALTH, withDrives},
	{wire.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, withVolumes},
	{wire.NodeServiceCapability_RPC_GET_VOLUME_STATS, withVolumes},
	{wire.NodeServiceCapability_RPC_EXPAND_VOLUME, withVolumes},
	{wire.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, withVolumes},
	{wire.NodeServiceCapability_RPC_GET_VOLUME_HEALTH, withVolumes},
	{nodeVolumeCondition, withVolumes},
}
