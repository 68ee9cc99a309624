package translate

import (
	"cmp"
	"fmt"
	"maps"
	"math"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// bytes converts a number of bytes to that of an object.
func bytes(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// SpecOf returns the spec that requests a volume of a node.
func SpecOf(r drivebay.VolumeRequest, node string) v1alpha1.VolumeSpec {
	r.Class.FSType = cmp.Or(r.Filesystem(), r.Class.FSType)
	return v1alpha1.VolumeSpec{
		Node: node, Name: r.Name, Mode: modeOf(r.Block), Class: classOf(r.Class), Source: sourceOf(r.Source),
		Size: v1alpha1.VolumeSize{Required: bytes(r.Size.Required), Limit: bytes(r.Size.Limit)},
	}
}

// RequestOf returns the request in a spec. An object has no secrets: an encrypted volume gets its passphrase when
// it is staged first.
func RequestOf(s *v1alpha1.VolumeSpec) (drivebay.VolumeRequest, error) {
	r := drivebay.VolumeRequest{Name: s.Name, Block: s.Mode == v1alpha1.ModeBlock, Size: SizeOf(s.Size)}
	if s.Name == "" || s.Mode == "" || s.Class == nil {
		return r, fmt.Errorf("%w: spec.name, spec.mode and spec.class are required to make a volume", drivebay.ErrInvalid)
	}
	if s.Source != nil {
		r.Source = drivebay.Source{Snapshot: s.Source.Snapshot, Volume: s.Source.Volume}
	}
	var err error
	r.Class, err = drivebay.ParseClass(parametersOf(s.Class))
	r.KeyAtStage = r.Class.Encryption != ""
	return r, err
}

// SizeOf returns the size in a spec.
func SizeOf(s v1alpha1.VolumeSize) drivebay.SizeRange {
	return drivebay.SizeRange{Required: uint64(max(s.Required, 0)), Limit: uint64(max(s.Limit, 0))}
}

// SpecOfVolume returns the spec of a volume that a node has and that no object requested: it requests
// nothing.
func SpecOfVolume(v *drivebay.Volume, node string) v1alpha1.VolumeSpec {
	s := v1alpha1.VolumeSpec{Node: node, Name: v.Name, Size: v1alpha1.VolumeSize{Required: bytes(v.Size)}, Source: sourceOf(v.Source)}
	if v.Mode != drivebay.ModeUnknown {
		s.Mode = modeOf(!v.HasFilesystem())
	}
	if v.Parameters == nil {
		return s
	}
	if c, err := drivebay.ParseClass(v.Parameters); err == nil {
		c.FSType = cmp.Or(v.FSType, c.FSType)
		s.Class = classOf(c)
	}
	return s
}

func modeOf(block bool) string {
	if block {
		return v1alpha1.ModeBlock
	}
	return v1alpha1.ModeFilesystem
}

func sourceOf(s drivebay.Source) *v1alpha1.VolumeSource {
	if s == (drivebay.Source{}) {
		return nil
	}
	return &v1alpha1.VolumeSource{Snapshot: s.Snapshot, Volume: s.Volume}
}

// anyDrives is the kind of drives of a class that has no parameter for them.
const anyDrives = "any"

func classOf(c drivebay.Class) *v1alpha1.VolumeClass {
	p := c.Parameters()
	return &v1alpha1.VolumeClass{Drives: cmp.Or(p[drivebay.ParameterClass], anyDrives), Backing: p[drivebay.ParameterBacking], Wipe: p[drivebay.ParameterWipe],
		FSType: p[drivebay.ParameterFSType], Encryption: p[drivebay.ParameterEncryption]}
}

// parametersOf returns a class as parameters of a StorageClass.
func parametersOf(c *v1alpha1.VolumeClass) map[string]string {
	if c == nil {
		return nil
	}
	out := map[string]string{drivebay.ParameterBacking: c.Backing, drivebay.ParameterWipe: c.Wipe, drivebay.ParameterFSType: c.FSType,
		drivebay.ParameterEncryption: c.Encryption}
	if c.Drives != anyDrives {
		out[drivebay.ParameterClass] = c.Drives
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}
