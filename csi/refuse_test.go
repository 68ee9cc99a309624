package csi

import (
	"maps"
	"math"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

type mode = wire.VolumeCapability_AccessMode_Mode

const (
	writer = wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	reader = wire.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
)

func mount(m mode, fs string, flags ...string) *wire.VolumeCapability {
	return &wire.VolumeCapability{AccessMode: &wire.VolumeCapability_AccessMode{Mode: m},
		AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{FsType: fs, MountFlags: flags}}}
}

func block(m mode) *wire.VolumeCapability {
	return &wire.VolumeCapability{AccessMode: &wire.VolumeCapability_AccessMode{Mode: m}, AccessType: &wire.VolumeCapability_Block{}}
}

func uses(all ...*wire.VolumeCapability) []*wire.VolumeCapability { return all }

func topology(pairs ...string) *wire.Topology {
	t := &wire.Topology{Segments: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		t.Segments[pairs[i]] = pairs[i+1]
	}
	return t
}

// with is a request with something changed.
func with[T proto.Message](req T, change func(T)) T {
	req = proto.Clone(req).(T)
	change(req)
	return req
}

// Requests that are in order, for a memory with the volume "there" (ext4) and the
// block device "raw".
var (
	create   = &wire.CreateVolumeRequest{Name: "new", VolumeCapabilities: uses(mount(writer, "xfs")), CapacityRange: &wire.CapacityRange{RequiredBytes: 1 << 30}}
	validity = &wire.ValidateVolumeCapabilitiesRequest{VolumeId: "there", VolumeCapabilities: uses(mount(writer, ""))}
	expand   = &wire.ControllerExpandVolumeRequest{VolumeId: "there", CapacityRange: &wire.CapacityRange{RequiredBytes: 2 << 30}}
	snapshot = &wire.CreateSnapshotRequest{Name: "snap", SourceVolumeId: "there"}
	stage    = &wire.NodeStageVolumeRequest{VolumeId: "there", StagingTargetPath: "/staging", VolumeCapability: mount(writer, "ext4")}
	publish  = &wire.NodePublishVolumeRequest{VolumeId: "there", StagingTargetPath: "/staging", TargetPath: "/target", VolumeCapability: mount(writer, "ext4")}
	stats    = &wire.NodeGetVolumeStatsRequest{VolumeId: "there", VolumePath: "/target"}
	grow     = &wire.NodeExpandVolumeRequest{VolumeId: "there", VolumePath: "/target"}
)

func there() *memory {
	return newMemory(
		&drivebay.VolumeView{Volume: drivebay.Volume{ID: "raw", Name: "raw", Size: 1 << 30, Mode: drivebay.ModeRaw}},
		&drivebay.VolumeView{Volume: drivebay.Volume{ID: "there", Name: "there", Node: "node-1", Size: 1 << 30, Mode: drivebay.ModeFS, FSType: "ext4",
			Publications: []drivebay.Publication{{Path: "/staging", Staging: true}, {Path: "/target"}}}})
}

// rules are what the specification says of requests, one row each. OK rows are
// there to show that it is the change that is refused.
var rules = []struct {
	rule string
	req  proto.Message
	code codes.Code
}{
	{"create", create, codes.OK},
	{"name REQUIRED", with(create, func(r *wire.CreateVolumeRequest) { r.Name = "" }), codes.InvalidArgument},
	{"128 bytes of name", with(create, func(r *wire.CreateVolumeRequest) { r.Name = strings.Repeat("n", 128) }), codes.OK},
	{"129 bytes of name", with(create, func(r *wire.CreateVolumeRequest) { r.Name = strings.Repeat("n", 129) }), codes.InvalidArgument},
	{"banned U+0085", with(create, func(r *wire.CreateVolumeRequest) { r.Name = "a\u0085" }), codes.InvalidArgument},
	{"tab is no banned character", with(create, func(r *wire.CreateVolumeRequest) { r.Name = "a\tb" }), codes.OK},
	{"volume_capabilities REQUIRED", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities = nil }), codes.InvalidArgument},
	{"access_mode REQUIRED", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode = nil }), codes.InvalidArgument},
	{"mode REQUIRED", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode.Mode = 0 }), codes.InvalidArgument},
	{"access_type one of", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessType = nil }), codes.InvalidArgument},
	{"ANY capability unsupported", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeCapabilities = uses(mount(writer, ""), mount(wire.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, ""))
	}), codes.InvalidArgument},
	{"MULTI_NODE_MULTI_WRITER", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeCapabilities = uses(mount(wire.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, ""))
	}), codes.InvalidArgument},
	{"a mode that nobody knows", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities = uses(mount(77, "")) }), codes.InvalidArgument},
	{"all SINGLE_NODE modes", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeCapabilities = uses(mount(writer, ""), mount(reader, ""), mount(wire.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, ""), mount(wire.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, ""))
	}), codes.OK},
	{"block and mount", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities = uses(mount(writer, ""), block(writer)) }), codes.InvalidArgument},
	{"two filesystems", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeCapabilities = uses(mount(writer, "xfs"), mount(writer, "ext4"))
	}), codes.InvalidArgument},
	{"a filesystem that we do not make", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities = uses(mount(writer, "ntfs")) }), codes.InvalidArgument},
	{"4 KiB of mount flags", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeCapabilities = uses(mount(writer, "", strings.Repeat("f", 4096)))
	}), codes.OK},
	{"more mount flags", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeCapabilities = uses(mount(writer, "", strings.Repeat("f", 4096), "g"))
	}), codes.InvalidArgument},
	{"volume_mount_group", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().VolumeMountGroup = "7" }), codes.InvalidArgument},
	{"no capacity_range", with(create, func(r *wire.CreateVolumeRequest) { r.CapacityRange = nil }), codes.OK},
	{"an empty one", with(create, func(r *wire.CreateVolumeRequest) { r.CapacityRange = &wire.CapacityRange{} }), codes.InvalidArgument},
	{"negative size", with(create, func(r *wire.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = -1 }), codes.InvalidArgument},
	{"negative limit", with(create, func(r *wire.CreateVolumeRequest) { r.CapacityRange.LimitBytes = math.MinInt64 }), codes.InvalidArgument},
	{"limit below size", with(create, func(r *wire.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 1<<30 - 1 }), codes.OutOfRange},
	{"the largest number", with(create, func(r *wire.CreateVolumeRequest) {
		r.CapacityRange = &wire.CapacityRange{RequiredBytes: math.MaxInt64, LimitBytes: math.MaxInt64}
	}), codes.ResourceExhausted},
	{"unknown parameter", with(create, func(r *wire.CreateVolumeRequest) { r.Parameters = map[string]string{"colour": "red"} }), codes.InvalidArgument},
	{"wrong parameter", with(create, func(r *wire.CreateVolumeRequest) { r.Parameters = map[string]string{drivebay.ParameterWipe: "maybe"} }), codes.InvalidArgument},
	{"4 KiB of parameters", with(create, func(r *wire.CreateVolumeRequest) {
		r.Parameters = map[string]string{"csi.storage.k8s.io/pv/name": strings.Repeat("v", 4096-26)}
	}), codes.OK},
	{"more parameters", with(create, func(r *wire.CreateVolumeRequest) {
		r.Parameters = map[string]string{"csi.storage.k8s.io/pv/name": strings.Repeat("v", 4096-25)}
	}), codes.InvalidArgument},
	{"mutable_parameters without MODIFY_VOLUME", with(create, func(r *wire.CreateVolumeRequest) { r.MutableParameters = map[string]string{"a": "b"} }), codes.InvalidArgument},
	{"key of a secret", with(create, func(r *wire.CreateVolumeRequest) { r.Secrets = map[string]string{"a b": "c"} }), codes.InvalidArgument},
	{"a secret", with(create, func(r *wire.CreateVolumeRequest) { r.Secrets = map[string]string{"a-b_c.D9": "c"} }), codes.OK},
	{"source one of", with(create, func(r *wire.CreateVolumeRequest) { r.VolumeContentSource = &wire.VolumeContentSource{} }), codes.InvalidArgument},
	{"snapshot_id REQUIRED", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeContentSource = &wire.VolumeContentSource{Type: &wire.VolumeContentSource_Snapshot{Snapshot: &wire.VolumeContentSource_SnapshotSource{}}}
	}), codes.InvalidArgument},
	{"source does not exist", with(create, func(r *wire.CreateVolumeRequest) {
		r.VolumeContentSource = &wire.VolumeContentSource{Type: &wire.VolumeContentSource_Snapshot{Snapshot: &wire.VolumeContentSource_SnapshotSource{SnapshotId: "no"}}}
	}), codes.NotFound},
	{"requisite or preferred", with(create, func(r *wire.CreateVolumeRequest) { r.AccessibilityRequirements = &wire.TopologyRequirement{} }), codes.InvalidArgument},
	{"requisite this node, any case", with(create, func(r *wire.CreateVolumeRequest) {
		r.AccessibilityRequirements = &wire.TopologyRequirement{Requisite: []*wire.Topology{topology(TopologyKey, "other"), topology(strings.ToUpper(TopologyKey), "node-1")}}
	}), codes.OK},
	{"requisite without this node", with(create, func(r *wire.CreateVolumeRequest) {
		r.AccessibilityRequirements = &wire.TopologyRequirement{Requisite: []*wire.Topology{topology(TopologyKey, "other"), topology(TopologyKey, "node-1", "zone", "Z")}}
	}), codes.ResourceExhausted},
	{"... and there is one", with(create, func(r *wire.CreateVolumeRequest) {
		r.Name = "there"
		r.AccessibilityRequirements = &wire.TopologyRequirement{Requisite: []*wire.Topology{topology(TopologyKey, "other")}}
	}), codes.AlreadyExists},
	{"preferred elsewhere", with(create, func(r *wire.CreateVolumeRequest) {
		r.AccessibilityRequirements = &wire.TopologyRequirement{Preferred: []*wire.Topology{topology(TopologyKey, "other")}}
	}), codes.OK},
	{"preferred and not requisite", with(create, func(r *wire.CreateVolumeRequest) {
		r.AccessibilityRequirements = &wire.TopologyRequirement{Preferred: []*wire.Topology{topology(TopologyKey, "other")}, Requisite: []*wire.Topology{topology(TopologyKey, "node-1")}}
	}), codes.InvalidArgument},

	{"delete what is not there", &wire.DeleteVolumeRequest{VolumeId: "no"}, codes.OK},
	{"delete what is mounted", &wire.DeleteVolumeRequest{VolumeId: "there"}, codes.FailedPrecondition},
	{"129 bytes of volume_id", &wire.DeleteVolumeRequest{VolumeId: strings.Repeat("i", 129)}, codes.InvalidArgument},
	{"get what is not there", &wire.ControllerGetVolumeRequest{VolumeId: "no"}, codes.NotFound},
	{"health of what is not there", &wire.ControllerGetVolumeHealthRequest{VolumeId: "no"}, codes.NotFound},
	{"validate what is not there", with(validity, func(r *wire.ValidateVolumeCapabilitiesRequest) { r.VolumeId = "no" }), codes.NotFound},
	{"max_entries negative", &wire.ListVolumesRequest{MaxEntries: -1}, codes.InvalidArgument},
	{"starting_token", &wire.ListVolumesRequest{StartingToken: "invalid-token"}, codes.Aborted},
	{"starting_token of another list", &wire.ListVolumesRequest{StartingToken: listHealth.token("there")}, codes.Aborted},
	{"starting_token, health", &wire.ControllerListVolumeHealthRequest{StartingToken: strings.Repeat("v", 5000)}, codes.Aborted},
	{"starting_token, snapshots", &wire.ListSnapshotsRequest{StartingToken: "s00000000x"}, codes.Aborted},
	{"max_entries negative, snapshots", &wire.ListSnapshotsRequest{MaxEntries: math.MinInt32}, codes.InvalidArgument},

	{"expand", expand, codes.OK},
	{"capacity_range REQUIRED", with(expand, func(r *wire.ControllerExpandVolumeRequest) { r.CapacityRange = nil }), codes.InvalidArgument},
	{"expand what is not there", with(expand, func(r *wire.ControllerExpandVolumeRequest) { r.VolumeId = "no" }), codes.NotFound},
	{"limit below what it has", with(expand, func(r *wire.ControllerExpandVolumeRequest) {
		r.CapacityRange = &wire.CapacityRange{LimitBytes: 1 << 20}
	}), codes.OutOfRange},
	{"exceeds capabilities", with(expand, func(r *wire.ControllerExpandVolumeRequest) { r.VolumeCapability = block(writer) }), codes.InvalidArgument},

	{"snapshot", snapshot, codes.OK},
	{"source_volume_id REQUIRED", with(snapshot, func(r *wire.CreateSnapshotRequest) { r.SourceVolumeId = "" }), codes.InvalidArgument},
	{"snapshot of what is not there", with(snapshot, func(r *wire.CreateSnapshotRequest) { r.SourceVolumeId = "no" }), codes.NotFound},
	{"snapshot parameters", with(snapshot, func(r *wire.CreateSnapshotRequest) { r.Parameters = map[string]string{"a": "b"} }), codes.InvalidArgument},
	{"the snapshotter's own", with(snapshot, func(r *wire.CreateSnapshotRequest) {
		r.Parameters = map[string]string{"csi.storage.k8s.io/volumesnapshot/name": "b"}
	}), codes.OK},
	{"snapshot elsewhere", with(snapshot, func(r *wire.CreateSnapshotRequest) {
		r.AccessibilityRequirements = &wire.TopologyRequirement{Requisite: []*wire.Topology{topology(TopologyKey, "other")}}
	}), codes.ResourceExhausted},
	{"delete no snapshot", &wire.DeleteSnapshotRequest{SnapshotId: "no"}, codes.OK},
	{"get no snapshot", &wire.GetSnapshotRequest{SnapshotId: "no"}, codes.NotFound},
	{"list no snapshot", &wire.ListSnapshotsRequest{SnapshotId: "no"}, codes.OK},

	{"stage", stage, codes.OK},
	{"stage what is not there", with(stage, func(r *wire.NodeStageVolumeRequest) { r.VolumeId = "no" }), codes.NotFound},
	{"staging path absolute", with(stage, func(r *wire.NodeStageVolumeRequest) { r.StagingTargetPath = "staging" }), codes.InvalidArgument},
	{"path of 4095 bytes", with(stage, func(r *wire.NodeStageVolumeRequest) { r.StagingTargetPath = "/" + strings.Repeat("p", 4094) }), codes.OK},
	{"path of 4096 bytes", with(stage, func(r *wire.NodeStageVolumeRequest) { r.StagingTargetPath = "/" + strings.Repeat("p", 4095) }), codes.InvalidArgument},
	{"path with a zero", with(stage, func(r *wire.NodeStageVolumeRequest) { r.StagingTargetPath = "/a\x00" }), codes.InvalidArgument},
	{"exceeds capabilities: mode", with(stage, func(r *wire.NodeStageVolumeRequest) {
		r.VolumeCapability = mount(wire.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, "")
	}), codes.FailedPrecondition},
	{"exceeds capabilities: block", with(stage, func(r *wire.NodeStageVolumeRequest) { r.VolumeCapability = block(writer) }), codes.FailedPrecondition},
	{"exceeds capabilities: filesystem", with(stage, func(r *wire.NodeStageVolumeRequest) { r.VolumeCapability = mount(writer, "xfs") }), codes.FailedPrecondition},
	{"exceeds capabilities: of a block device", with(stage, func(r *wire.NodeStageVolumeRequest) { r.VolumeId = "raw" }), codes.FailedPrecondition},
	{"publish_context without PUBLISH_UNPUBLISH_VOLUME", with(stage, func(r *wire.NodeStageVolumeRequest) { r.PublishContext = map[string]string{"a": "b"} }), codes.InvalidArgument},
	{"volume_context of another", with(stage, func(r *wire.NodeStageVolumeRequest) { r.VolumeContext = map[string]string{"a": "b"} }), codes.InvalidArgument},
	{"volume_context of the provisioner", with(stage, func(r *wire.NodeStageVolumeRequest) {
		r.VolumeContext = map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "b", "csi.storage.k8s.io/pod.name": "c"}
	}), codes.OK},

	{"publish", publish, codes.OK},
	{"staging_target_path MUST be set", with(publish, func(r *wire.NodePublishVolumeRequest) { r.StagingTargetPath = "" }), codes.FailedPrecondition},
	{"target_path REQUIRED", with(publish, func(r *wire.NodePublishVolumeRequest) { r.TargetPath = "" }), codes.InvalidArgument},
	{"ephemeral", with(publish, func(r *wire.NodePublishVolumeRequest) { r.VolumeContext = map[string]string{ephemeralKey: "true"} }), codes.FailedPrecondition},
	{"target path absolute", &wire.NodeUnpublishVolumeRequest{VolumeId: "there", TargetPath: "../target"}, codes.InvalidArgument},
	{"unstage what is not there", &wire.NodeUnstageVolumeRequest{VolumeId: "no", StagingTargetPath: "/a"}, codes.NotFound},

	{"stats", stats, codes.OK},
	{"stats of what is not there", with(stats, func(r *wire.NodeGetVolumeStatsRequest) { r.VolumeId = "no" }), codes.NotFound},
	{"stats at another path", with(stats, func(r *wire.NodeGetVolumeStatsRequest) { r.VolumePath = "/" }), codes.NotFound},
	{"stats at no absolute path", with(stats, func(r *wire.NodeGetVolumeStatsRequest) { r.VolumePath = "some/path" }), codes.NotFound},
	{"stats, staging path absolute", with(stats, func(r *wire.NodeGetVolumeStatsRequest) { r.StagingTargetPath = "a" }), codes.InvalidArgument},
	{"node health", &wire.NodeGetVolumeHealthRequest{VolumeId: "there"}, codes.OK},
	{"node health at a path it never came to", &wire.NodeGetVolumeHealthRequest{VolumeId: "there", VolumePublishPath: "/never"}, codes.OK},
	{"node health, path absolute", &wire.NodeGetVolumeHealthRequest{VolumeId: "there", VolumePublishPath: "never"}, codes.InvalidArgument},
	{"node health of what is not there", &wire.NodeGetVolumeHealthRequest{VolumeId: "no"}, codes.NotFound},
	{"grow", grow, codes.OK},
	{"grow at another path", with(grow, func(r *wire.NodeExpandVolumeRequest) { r.VolumePath = "/" }), codes.NotFound},
	{"grow, exceeds capabilities", with(grow, func(r *wire.NodeExpandVolumeRequest) { r.VolumeCapability = block(writer) }), codes.InvalidArgument},
	{"grow, limit below size", with(grow, func(r *wire.NodeExpandVolumeRequest) {
		r.CapacityRange = &wire.CapacityRange{RequiredBytes: 2, LimitBytes: 1}
	}), codes.OutOfRange},

	{"capacity", &wire.GetCapacityRequest{VolumeCapabilities: uses(mount(writer, ""))}, codes.OK},
	{"capacity, parameters", &wire.GetCapacityRequest{Parameters: map[string]string{"a": "b"}}, codes.InvalidArgument},
	{"capacity, access_mode REQUIRED", &wire.GetCapacityRequest{VolumeCapabilities: uses(&wire.VolumeCapability{AccessType: &wire.VolumeCapability_Block{}})}, codes.InvalidArgument},
}

func TestRules(t *testing.T) {
	asked := maps.Clone(implemented)
	for _, c := range rules {
		t.Run(c.rule, func(t *testing.T) {
			_, _, conn, _ := rig(t, there())
			_, err := ask(t, conn, c.req)
			if status.Code(err) != c.code {
				t.Errorf("%v, want %v", err, c.code)
			}
			if err != nil && (status.Convert(err).Message() == "" || len(status.Convert(err).Details()) > 0) {
				t.Errorf("no words for people, or details: %v", err)
			}
		})
		delete(asked, callOf(c.req))
	}
	for _, free := range []string{"GetPluginInfo", "GetPluginCapabilities", "Probe", "ControllerGetCapabilities", "NodeGetCapabilities", "NodeGetInfo", "NodeGetStorageHealth"} {
		delete(asked, free)
	}
	if len(asked) > 0 {
		t.Errorf("no rule for %v", asked)
	}
}

// callOf is the call that a request belongs to.
func callOf(req proto.Message) string {
	return strings.TrimSuffix(string(req.ProtoReflect().Descriptor().Name()), "Request")
}

// ask makes the call that a request belongs to.
func ask(t testing.TB, conn *grpc.ClientConn, req proto.Message) (proto.Message, error) {
	t.Helper()
	services := wire.File_csi_proto.Services()
	for i := range services.Len() {
		if m := services.Get(i).Methods().ByName(req.ProtoReflect().Descriptor().Name()[:len(callOf(req))]); m != nil {
			resp := answerTo(t, m)
			return resp, conn.Invoke(t.Context(), "/"+string(services.Get(i).FullName())+"/"+string(m.Name()), req, resp)
		}
	}
	t.Fatalf("no call takes a %T", req)
	return nil, nil
}
