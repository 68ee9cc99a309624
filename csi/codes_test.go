package csi

import (
	"errors"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

// TestAccessModes: a mode that the specification does not have is an invalid request, one
// that a local volume does not have is not supported.
func TestAccessModes(t *testing.T) {
	for mode, want := range map[wire.VolumeCapability_AccessMode_Mode]error{
		99: drivebay.ErrInvalid, -1: drivebay.ErrInvalid,
		wire.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER: drivebay.ErrNoSupport,
		wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:      nil,
	} {
		_, err := parseUse(&wire.VolumeCapability{AccessMode: &wire.VolumeCapability_AccessMode{Mode: mode},
			AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{}}})
		if !errors.Is(err, want) {
			t.Errorf("mode %d: %v, want %v", mode, err, want)
		}
	}
}
