package drivebay

import (
	"cmp"
	"fmt"
	"maps"
)

// Check refuses a request for a volume that no machine can satisfy, whatever its secrets are.
func (r VolumeRequest) Check() error {
	switch {
	case r.Name == "" || len(r.Name) > 1<<10:
		return fmt.Errorf("volume: %w: the name must have 1 to 1024 bytes", ErrInvalid)
	case r.Source.Snapshot != "" && r.Source.Volume != "":
		return fmt.Errorf("volume %q: %w: it can begin as one thing only", r.Name, ErrInvalid)
	case !r.Block && r.Filesystem() != "ext4" && r.Filesystem() != "xfs" && r.Filesystem() != "btrfs":
		return fmt.Errorf("volume %q: %w: filesystem %q", r.Name, ErrInvalid, r.Filesystem())
	case r.Source != (Source{}) && r.Class.Backing != BackingThin:
		return fmt.Errorf("volume %q: %w: only thin volumes can be made from others, not %s; use a StorageClass with drivebay.io/backing: thin", r.Name, ErrNoSupport, r.Class.Backing)
	}
	return nil
}

// Mode returns the mode of a requested volume.
func (r VolumeRequest) Mode() VolumeMode {
	switch {
	case !r.Block:
		return ModeFS
	case r.Class.Backing == BackingPartition:
		return ModeRawPart
	}
	return ModeRaw
}

// Filesystem returns the filesystem of a request; "" for a block volume.
func (r VolumeRequest) Filesystem() string {
	if r.Block {
		return ""
	}
	return cmp.Or(r.FSType, r.Class.FSType)
}

// Location returns the kind of location that a volume of the backing has.
func (b Backing) Location() LocationKind {
	switch b {
	case BackingPartition:
		return LocationPartition
	case BackingDrive:
		return LocationDrive
	case BackingLVM:
		return LocationLVM
	case BackingThin:
		return LocationThin
	case BackingMirror:
		return LocationMirror
	}
	return LocationUnknown
}

// Parameters returns the class as parameters that ParseClass reads.
func (c Class) Parameters() map[string]string {
	out := map[string]string{
		ParameterBacking: string(c.Backing), ParameterWipe: string(c.Wipe), ParameterFSType: c.FSType,
		ParameterClass: map[Type]string{TypeHDD: "hdd", TypeSSD: "ssd", TypeNVMe: "nvme"}[c.Drives], ParameterEncryption: c.Encryption,
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// Fits returns how an existing volume differs from the requested one, nil if it does not. Properties that
// were lost with the store are not compared: a partition that was found without its name may be a whole drive.
func (v *Volume) Fits(r VolumeRequest) error {
	differs := func(what string, is, want any) error {
		return fmt.Errorf("volume %s: %w: its %s is %v, requested is %v", v.ID, ErrExists, what, is, want)
	}
	want, known := r.Class.Parameters(), v.Parameters != nil && v.Mode != ModeUnknown
	switch {
	case !r.Size.Holds(v.Size):
		return differs("size", v.Size, r.Size)
	case v.Mode != ModeUnknown && v.Mode != r.Mode():
		return differs("mode", v.Mode, r.Mode())
	case v.FSType != "" && v.FSType != r.Filesystem() && (r.Source == Source{} || r.FSType != ""): // a copy has that of its source
		return differs("filesystem", v.FSType, r.Filesystem())
	case v.Location.Kind != r.Class.Backing.Location() && (v.Name != "" || v.Location.OnLVM() || r.Class.Backing != BackingPartition && r.Class.Backing != BackingDrive):
		return differs("backing", v.Location.Kind, r.Class.Backing)
	case known && v.Parameters[ParameterWipe] != want[ParameterWipe]:
		return differs("wipe", v.Parameters[ParameterWipe], want[ParameterWipe])
	case known && v.Parameters[ParameterClass] != want[ParameterClass]:
		return differs("class", v.Parameters[ParameterClass], want[ParameterClass])
	case v.Mode != ModeUnknown && v.Encrypted() != (r.Class.Encryption != ""):
		return differs("encryption", v.Encrypted(), r.Class.Encryption != "")
	case v.Source != r.Source: // a partition, whose source is not on the drive, is never a copy
		return differs("source", v.Source, r.Source)
	}
	return nil
}
