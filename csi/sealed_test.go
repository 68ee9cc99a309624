package csi_test

import (
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

var (
	sealedClass = map[string]string{drivebay.ParameterBacking: "partition", drivebay.ParameterEncryption: drivebay.EncryptionLUKS2}
	sealedUse   = &wire.VolumeCapability{
		AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{}},
		AccessMode: &wire.VolumeCapability_AccessMode{Mode: wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
)

// key are the secrets of a call; empty: none.
func key(passphrase string) map[string]string {
	if passphrase == "" {
		return nil
	}
	return map[string]string{drivebay.SecretPassphrase: passphrase}
}

// TestSealed: which code an encrypted volume answers which secret with, call by call.
// No answer has the secret in it.
func TestSealed(t *testing.T) {
	const right, wrong = "open, sesame", "open, barley"
	sim, err := hostsim.New(hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Size: "20GB"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	drives, volumes := drive(t, sim, drivemgr.Options{Claim: claim(t, "all")}, kubelet)
	conn, err := grpc.NewClient(serve(t, drives, volumes), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	controller, node := wire.NewControllerClient(conn), wire.NewNodeClient(conn)
	answers := func(what string, err error, want codes.Code) {
		t.Helper()
		if status.Code(err) != want || err != nil && strings.Contains(err.Error(), "open,") {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	id := ""
	create := func(passphrase string, size int64) error {
		v, err := controller.CreateVolume(t.Context(), &wire.CreateVolumeRequest{Name: "v", Parameters: sealedClass, Secrets: key(passphrase),
			VolumeCapabilities: []*wire.VolumeCapability{sealedUse}, CapacityRange: &wire.CapacityRange{RequiredBytes: size}})
		id = v.GetVolume().GetVolumeId()
		return err
	}
	room := func() (most int64) {
		r, err := controller.GetCapacity(t.Context(), &wire.GetCapacityRequest{Parameters: sealedClass, VolumeCapabilities: []*wire.VolumeCapability{sealedUse}})
		answers("capacity", err, codes.OK)
		return r.GetMaximumVolumeSize().GetValue()
	}
	const path = kubelet + "/stage"
	stage := func(passphrase string) error {
		_, err := node.NodeStageVolume(t.Context(), &wire.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: path, VolumeCapability: sealedUse, Secrets: key(passphrase)})
		return err
	}
	grow := func(passphrase string) error {
		_, err := node.NodeExpandVolume(t.Context(), &wire.NodeExpandVolumeRequest{VolumeId: id, VolumePath: path, StagingTargetPath: path, Secrets: key(passphrase)})
		return err
	}
	most := room()
	answers("create without a secret", create("", 1<<30), codes.InvalidArgument)
	answers("create more than there is", create(right, most+1<<20), codes.OutOfRange) // no drive holds it
	answers("create the most that there is", create(right, most), codes.OK)
	if left := room(); left != 0 {
		t.Errorf("%d bytes are left", left)
	}
	_, err = controller.DeleteVolume(t.Context(), &wire.DeleteVolumeRequest{VolumeId: id})
	answers("delete", err, codes.OK)

	answers("create", create(right, 1<<30), codes.OK)
	for range 2 {
		answers("stage without a secret", stage(""), codes.InvalidArgument)
		answers("stage with a wrong one", stage(wrong), codes.Unauthenticated)
		answers("stage", stage(right), codes.OK)
	}
	r, err := controller.ControllerExpandVolume(t.Context(), &wire.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &wire.CapacityRange{RequiredBytes: 2 << 30}})
	answers("expand", err, codes.OK)
	if !r.GetNodeExpansionRequired() {
		t.Error("nobody is told to grow it on its node")
	}
	answers("grow without a secret", grow(""), codes.InvalidArgument)
	answers("grow with a wrong one", grow(wrong), codes.Unauthenticated)
	answers("grow", grow(right), codes.OK)
	answers("grow again", grow(right), codes.OK)
}
