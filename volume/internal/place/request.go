package place

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// defaultSize is the size of a volume whose request names none.
const defaultSize = partitions.GiB

// Most is a size beyond all drives. Sums of a few of them do not overflow.
const Most = 1 << 60

// SizeOf returns the size of a requested volume.
func SizeOf(r drivebay.SizeRange, c drivebay.Class, block bool, least uint64) (uint64, error) {
	u := Unit(c.Backing)
	least = max(least, Smallest(c, block))
	switch {
	case r.Limit > 0 && r.Required > r.Limit:
		return 0, fmt.Errorf("%w: the required size %s is larger than the limit %s", drivebay.ErrInvalid, partitions.SizeText(r.Required), partitions.SizeText(r.Limit))
	case r.Required > Most:
		return 0, fmt.Errorf("%w: requested %s, larger than any volume", drivebay.ErrRange, partitions.SizeText(r.Required))
	}
	size := r.Required
	if size == 0 {
		if size = defaultSize; r.Limit > 0 {
			size = min(size, r.Limit/u*u)
		}
	}
	if size = (max(size, least) + u - 1) / u * u; r.Limit > 0 && size > r.Limit {
		return 0, fmt.Errorf("%w: the smallest possible size is %s, larger than the limit %s", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(r.Limit))
	}
	return size, nil
}

// ModeOf returns the mode of a requested volume.
func ModeOf(r drivebay.VolumeRequest) drivebay.VolumeMode {
	switch {
	case !r.Block:
		return drivebay.ModeFS
	case r.Class.Backing == drivebay.BackingPartition:
		return drivebay.ModeRawPart
	}
	return drivebay.ModeRaw
}

// FSOf returns the filesystem of a request; "" for a block volume.
func FSOf(r drivebay.VolumeRequest) string {
	if r.Block {
		return ""
	}
	return cmp.Or(r.FSType, r.Class.FSType)
}

// ParametersOf returns a class as parameters that ParseClass reads.
func ParametersOf(c drivebay.Class) map[string]string {
	out := map[string]string{
		drivebay.ParameterBacking: string(c.Backing), drivebay.ParameterWipe: string(c.Wipe), drivebay.ParameterFSType: c.FSType,
		drivebay.ParameterClass: map[drivebay.Type]string{drivebay.TypeHDD: "hdd", drivebay.TypeSSD: "ssd", drivebay.TypeNVMe: "nvme"}[c.Drives], drivebay.ParameterEncryption: c.Encryption,
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// Fits refuses an existing volume that differs from the requested one. Properties that
// were lost with the store are not compared.
func Fits(v *drivebay.Volume, r drivebay.VolumeRequest) error {
	differs := func(what string, is, want any) error {
		return fmt.Errorf("volume %s: %w: its %s is %v, requested is %v", v.ID, drivebay.ErrExists, what, is, want)
	}
	want, known := ParametersOf(r.Class), v.Parameters != nil && v.Mode != drivebay.ModeUnknown
	switch {
	case !r.Size.Holds(v.Size):
		return differs("size", v.Size, r.Size)
	case v.Mode != drivebay.ModeUnknown && v.Mode != ModeOf(r):
		return differs("mode", v.Mode, ModeOf(r))
	case v.FSType != "" && v.FSType != FSOf(r):
		return differs("filesystem", v.FSType, FSOf(r))
	case v.Location.Kind != KindOf(r.Class.Backing) && v.Name != "":
		return differs("backing", v.Location.Kind, r.Class.Backing)
	case known && v.Parameters[drivebay.ParameterWipe] != want[drivebay.ParameterWipe]:
		return differs("wipe", v.Parameters[drivebay.ParameterWipe], want[drivebay.ParameterWipe])
	case known && v.Parameters[drivebay.ParameterClass] != want[drivebay.ParameterClass]:
		return differs("class", v.Parameters[drivebay.ParameterClass], want[drivebay.ParameterClass])
	case v.Mode != drivebay.ModeUnknown && v.Encrypted() != (r.Class.Encryption != ""):
		return differs("encryption", v.Encrypted(), r.Class.Encryption != "")
	case v.Source != r.Source && v.Name != "":
		return differs("source", v.Source, r.Source)
	}
	return nil
}

// ErrNoPassphrase is the error for an encrypted volume whose request has no passphrase.
var ErrNoPassphrase = fmt.Errorf("%w: the secrets have no %q", drivebay.ErrInvalid, drivebay.SecretPassphrase)

// Check refuses a request for a volume that no machine can satisfy.
func Check(r drivebay.VolumeRequest) error {
	switch {
	case r.Class.Encryption != "" && r.Secrets[drivebay.SecretPassphrase] == "":
		return fmt.Errorf("volume %q: %w", r.Name, ErrNoPassphrase)
	case r.Name == "" || len(r.Name) > 1<<10:
		return fmt.Errorf("volume: %w: the name must have 1 to 1024 bytes", drivebay.ErrInvalid)
	case r.Source.Snapshot != "" && r.Source.Volume != "":
		return fmt.Errorf("volume %q: %w: it can begin as one thing only", r.Name, drivebay.ErrInvalid)
	case !r.Block && FSOf(r) != "ext4" && FSOf(r) != "xfs" && FSOf(r) != "btrfs":
		return fmt.Errorf("volume %q: %w: filesystem %q", r.Name, drivebay.ErrInvalid, FSOf(r))
	case r.Source != (drivebay.Source{}) && r.Class.Backing != drivebay.BackingThin:
		return fmt.Errorf("volume %q: %w: only thin volumes can be made from others, not %s; use a StorageClass with drivebay.io/backing: thin", r.Name, drivebay.ErrNoSupport, r.Class.Backing)
	}
	return nil
}
