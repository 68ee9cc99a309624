package csi

import (
	"fmt"
	"slices"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

// use is how a caller wants to use a volume, from a VolumeCapability.
type use struct {
	block  bool
	fsType string // empty: the one that the volume has
	flags  []string
	access drivebay.Access
}

// accesses holds the supported access modes: those of a volume on one node.
var accesses = map[wire.VolumeCapability_AccessMode_Mode]drivebay.Access{
	wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        drivebay.AccessWriter,
	wire.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   drivebay.AccessReader,
	wire.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: drivebay.AccessSingleWriter,
	wire.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  drivebay.AccessMultiWriter,
}

// parseUse reads a capability. Errors never contain its mount flags.
func parseUse(c *wire.VolumeCapability) (use, error) {
	mode := c.GetAccessMode().GetMode()
	u := use{block: c.GetBlock() != nil, fsType: c.GetMount().GetFsType(), flags: c.GetMount().GetMountFlags(), access: accesses[mode]}
	_, known := wire.VolumeCapability_AccessMode_Mode_name[int32(mode)]
	switch {
	case !known:
		return u, fmt.Errorf("access mode %d: %w: unknown", int32(mode), drivebay.ErrInvalid)
	case u.access == drivebay.AccessUnknown:
		return u, fmt.Errorf("access mode %v: %w: a volume is accessible from one node only", mode, drivebay.ErrNoSupport)
	case u.fsType != "" && !slices.Contains(drivebay.FSTypes, u.fsType):
		return u, fmt.Errorf("filesystem %q: %w: the supported filesystems are %s", u.fsType, drivebay.ErrNoSupport, strings.Join(drivebay.FSTypes, ", "))
	case c.GetMount().GetVolumeMountGroup() != "":
		return u, fmt.Errorf("volume_mount_group: %w", drivebay.ErrNoSupport)
	}
	return u, nil
}

// parseUses reads the capabilities that one volume must have together.
func parseUses(all []*wire.VolumeCapability) (block bool, fsType string, err error) {
	for i, c := range all {
		u, err := parseUse(c)
		if err != nil {
			return false, "", err
		}
		if i > 0 && u.block != block {
			return false, "", fmt.Errorf("volume_capabilities: %w: a volume is either a block device or has a filesystem", drivebay.ErrNoSupport)
		}
		if u.fsType != "" && fsType != "" && u.fsType != fsType {
			return false, "", fmt.Errorf("volume_capabilities: %w: a volume has one filesystem, not %s and %s", drivebay.ErrNoSupport, fsType, u.fsType)
		}
		block = u.block
		if u.fsType != "" {
			fsType = u.fsType
		}
	}
	return block, fsType, nil
}

// fits returns why a volume cannot be used in this way, nil if it can.
func (u use) fits(v *drivebay.Volume) error {
	switch {
	case v.Mode == drivebay.ModeUnknown:
		return fmt.Errorf("volume %s: %w: the mode of the volume is unknown", v.ID, drivebay.ErrNoSupport)
	case u.block && v.HasFilesystem():
		return fmt.Errorf("volume %s: %w: the request is for a block device, but the volume has a filesystem", v.ID, drivebay.ErrNoSupport)
	case !u.block && !v.HasFilesystem():
		return fmt.Errorf("volume %s: %w: the volume is a block device without a filesystem", v.ID, drivebay.ErrNoSupport)
	case u.fsType != "" && u.fsType != v.FSType:
		return fmt.Errorf("volume %s: %w: the filesystem of the volume is %s, not %s", v.ID, drivebay.ErrNoSupport, v.FSType, u.fsType)
	}
	return nil
}

// sizeRange reads a capacity range; nil sets no limit.
func sizeRange(r *wire.CapacityRange) (drivebay.SizeRange, error) {
	required, limit := r.GetRequiredBytes(), r.GetLimitBytes()
	switch {
	case required < 0 || limit < 0:
		return drivebay.SizeRange{}, fmt.Errorf("capacity_range: %w: negative size", drivebay.ErrInvalid)
	case r != nil && required == 0 && limit == 0:
		return drivebay.SizeRange{}, fmt.Errorf("capacity_range: %w: required_bytes or limit_bytes is required", drivebay.ErrInvalid)
	case limit > 0 && limit < required:
		return drivebay.SizeRange{}, fmt.Errorf("capacity_range: %w: required_bytes %d exceeds limit_bytes %d", drivebay.ErrRange, required, limit)
	}
	return drivebay.SizeRange{Required: uint64(required), Limit: uint64(limit)}, nil
}

// source reads the volume or snapshot that a new volume copies.
func source(s *wire.VolumeContentSource) drivebay.Source {
	return drivebay.Source{Snapshot: s.GetSnapshot().GetSnapshotId(), Volume: s.GetVolume().GetVolumeId()}
}

// volumeRequest reads a CreateVolume request, except the topology.
func volumeRequest(req *wire.CreateVolumeRequest) (r drivebay.VolumeRequest, err error) {
	r = drivebay.VolumeRequest{Name: req.Name, Source: source(req.VolumeContentSource), Secrets: req.Secrets}
	if len(req.MutableParameters) > 0 {
		return r, fmt.Errorf("mutable_parameters: %w", drivebay.ErrNoSupport)
	}
	if r.Class, err = drivebay.ParseClass(req.Parameters); err != nil {
		return r, err
	}
	if r.Size, err = sizeRange(req.CapacityRange); err != nil {
		return r, err
	}
	r.Block, r.FSType, err = parseUses(req.VolumeCapabilities)
	return r, err
}

// contextOfOthers holds the prefixes of volume_context keys that Kubernetes adds itself
// (external-provisioner; CSIDriver.spec.podInfoOnMount and tokenRequests).
var contextOfOthers = []string{"csi.storage.k8s.io/", "storage.kubernetes.io/"}

// podOf returns the pod in a volume_context (CSIDriver.spec.podInfoOnMount).
func podOf(context map[string]string) drivebay.Pod {
	const most = 253 // of each in Kubernetes
	at := func(key string) string { return drivebay.PlainText(context["csi.storage.k8s.io/pod."+key], most) }
	return drivebay.Pod{Namespace: at("namespace"), Name: at("name"), UID: at("uid")}
}

const ephemeralKey = "csi.storage.k8s.io/ephemeral"

// checkContext refuses a volume_context with keys other than those of Kubernetes: our
// volumes have none.
func checkContext(context map[string]string) error {
	if context[ephemeralKey] == "true" {
		return fmt.Errorf("volume_context: %w: ephemeral volumes are not supported", drivebay.ErrNoSupport)
	}
	for key := range context {
		if !slices.ContainsFunc(contextOfOthers, func(p string) bool { return strings.HasPrefix(key, p) }) {
			return fmt.Errorf("volume_context: %w: unknown key %q: drivebay volumes have no context", drivebay.ErrInvalid, key)
		}
	}
	return nil
}

// snapshotParameters refuses every parameter except those that the snapshotter adds
// itself (external-snapshotter, --extra-create-metadata).
func snapshotParameters(parameters map[string]string) error {
	for key := range parameters {
		if !strings.HasPrefix(key, "csi.storage.k8s.io/") {
			return fmt.Errorf("parameter %s: %w: unknown parameter", key, drivebay.ErrInvalid)
		}
	}
	return nil
}
