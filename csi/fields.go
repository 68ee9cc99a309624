package csi

import (
	"fmt"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// required holds the required fields of each message, by the comments of csi.proto
// v1.13.0; a test reads them there. Without one the answer is INVALID_ARGUMENT.
var required = map[protoreflect.Name][]protoreflect.Name{
	"CreateVolumeRequest": {"name", "volume_capabilities"},
	"VolumeContentSource": {"type"},
	"SnapshotSource":      {"snapshot_id"},
	"VolumeSource":        {"volume_id"},
	"VolumeCapability":    {"access_type", "access_mode"},
	"AccessMode":          {"mode"},

	"DeleteVolumeRequest":               {"volume_id"},
	"ValidateVolumeCapabilitiesRequest": {"volume_id", "volume_capabilities"},
	"ControllerGetVolumeRequest":        {"volume_id"},
	"ControllerGetVolumeHealthRequest":  {"volume_id"},
	"ControllerExpandVolumeRequest":     {"volume_id", "capacity_range"},
	"CreateSnapshotRequest":             {"source_volume_id", "name"},
	"DeleteSnapshotRequest":             {"snapshot_id"},
	"GetSnapshotRequest":                {"snapshot_id"},

	"NodeStageVolumeRequest":     {"volume_id", "staging_target_path", "volume_capability"},
	"NodeUnstageVolumeRequest":   {"volume_id", "staging_target_path"},
	"NodePublishVolumeRequest":   {"volume_id", "target_path", "volume_capability"},
	"NodeUnpublishVolumeRequest": {"volume_id", "target_path"},
	"NodeGetVolumeStatsRequest":  {"volume_id", "volume_path"},
	"NodeGetVolumeHealthRequest": {"volume_id"},
	"NodeExpandVolumeRequest":    {"volume_id", "volume_path"},
}

// Sizes of fields (spec.md, "Size Limits"), in bytes.
const (
	maxString = 128
	maxMap    = 4 << 10
	maxFlags  = 4 << 10 // of all mount_flags together
	maxPath   = 4095    // PATH_MAX without the terminating zero
)

// sizes holds the limits of the fields that override the general limit. The lists check
// their tokens.
var sizes = map[protoreflect.Name]int{
	"staging_target_path": maxPath, "target_path": maxPath, "volume_path": maxPath, "volume_publish_path": maxPath,
	"starting_token": rpc.MaxMessage,
}

// absolute holds the paths that have to be absolute; checkVolumePath checks volume_path.
var absolute = map[protoreflect.Name]bool{"staging_target_path": true, "target_path": true, "volume_publish_path": true}

// checkFields checks a request, and all messages in it, against what the specification
// requires of each kind of field.
func checkFields(m protoreflect.Message) error {
	d := m.Descriptor()
	for _, name := range required[d.Name()] {
		oneof := d.Oneofs().ByName(name)
		if oneof != nil && m.WhichOneof(oneof) == nil || oneof == nil && !m.Has(d.Fields().ByName(name)) {
			return fmt.Errorf("%s: %w: the field is required", name, drivebay.ErrInvalid)
		}
	}
	var err error
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if err = checkField(f, v); err != nil {
			err = fmt.Errorf("%s: %w", f.Name(), err)
		}
		return err == nil
	})
	return err
}

func checkField(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.IsMap():
		return checkMap(f, v.Map())
	case f.IsList():
		return checkList(f, v.List())
	case f.Message() != nil:
		return checkFields(v.Message())
	case f.Kind() == protoreflect.StringKind:
		return checkString(f, v.String())
	}
	return nil
}

func checkMap(f protoreflect.FieldDescriptor, m protoreflect.Map) error {
	size, wrong := 0, false
	secret, _ := proto.GetExtension(f.Options(), wire.E_CsiSecret).(bool)
	m.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		size += len(key.String()) + len(v.String())
		wrong = wrong || secret && !rpc.IsSecretKey(key.String())
		return true
	})
	if wrong {
		return fmt.Errorf("%w: a key consists of letters, digits, '-', '_' and '.'", drivebay.ErrInvalid)
	}
	return checkSize(size, maxMap)
}

func checkList(f protoreflect.FieldDescriptor, l protoreflect.List) error {
	size := 0
	for i := range l.Len() {
		switch {
		case f.Message() != nil:
			if err := checkFields(l.Get(i).Message()); err != nil {
				return err
			}
		case f.Name() == "mount_flags":
			size += len(l.Get(i).String())
		case f.Kind() == protoreflect.StringKind:
			if err := checkString(f, l.Get(i).String()); err != nil {
				return err
			}
		}
	}
	return checkSize(size, maxFlags)
}

func checkString(f protoreflect.FieldDescriptor, s string) error {
	limit, ok := sizes[f.Name()]
	if !ok {
		limit = maxString
	}
	switch {
	case limit == maxPath && strings.ContainsRune(s, 0):
		return fmt.Errorf("%w: the path contains a NUL byte", drivebay.ErrInvalid)
	case absolute[f.Name()] && !strings.HasPrefix(s, "/"):
		return fmt.Errorf("%w: the path is not absolute", drivebay.ErrInvalid)
	case f.Name() == "name" && strings.ContainsFunc(s, banned):
		return fmt.Errorf("%w: the name contains control characters", drivebay.ErrInvalid)
	}
	return checkSize(len(s), limit)
}

// banned reports whether a name must not contain a character (csi.proto,
// CreateVolumeRequest.name and CreateSnapshotRequest.name).
func banned(r rune) bool {
	switch {
	case r <= 0x08, r == 0x0b, r == 0x0c, 0x0e <= r && r <= 0x1f, 0x7f <= r && r <= 0x9f:
		return true
	}
	return false
}

func checkSize(size, limit int) error {
	if size > limit {
		return fmt.Errorf("%w: %d bytes; the limit is %d bytes", drivebay.ErrInvalid, size, limit)
	}
	return nil
}
