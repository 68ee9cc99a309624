package addons

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestNodeReclaimSpace(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		req  *reclaimspace.NodeReclaimSpaceRequest
		code codes.Code
		says string
		want drivebay.ReclaimRequest
	}{
		"at its path": {&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "there", VolumePath: "/v", StagingTargetPath: "/s", VolumeCapability: mountOf("")}, codes.OK, "",
			drivebay.ReclaimRequest{Volume: "there", Path: "/v", Staging: "/s", Block: &no}},
		"as the sidecar asks": {&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "there", StagingTargetPath: "/s", VolumeCapability: mountOf("")}, codes.OK, "",
			drivebay.ReclaimRequest{Volume: "there", Path: "/s", Staging: "/s", Block: &no}},
		"no volume_id":             {&reclaimspace.NodeReclaimSpaceRequest{VolumePath: "/v"}, codes.InvalidArgument, "volume_id", drivebay.ReclaimRequest{}},
		"no path":                  {&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "there"}, codes.InvalidArgument, "volume_path", drivebay.ReclaimRequest{}},
		"no block device":          {&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "there", VolumePath: "/v", VolumeCapability: blockUse()}, codes.InvalidArgument, "the request is for a block device", drivebay.ReclaimRequest{}},
		"no such volume":           {&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "elsewhere", VolumePath: "/v"}, codes.NotFound, "elsewhere", drivebay.ReclaimRequest{Volume: "elsewhere", Path: "/v"}},
		"a wrong secret":           {&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "sealed", VolumePath: "/v"}, codes.Unauthenticated, "sealed", drivebay.ReclaimRequest{Volume: "sealed", Path: "/v"}},
		"nothing can be discarded": {&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "raw", VolumePath: "/v"}, codes.Unimplemented, "raw", drivebay.ReclaimRequest{Volume: "raw", Path: "/v"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := there()
			_, conn, _ := rig(t, m)
			r, err := reclaimspace.NewReclaimSpaceNodeClient(conn).NodeReclaimSpace(t.Context(), c.req)
			if status.Code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v, %v, want %v", r, err, c.code)
			}
			if got := m.last(); c.want.Volume != "" && !reflect.DeepEqual(got, c.want) || c.want.Volume == "" && got != nil {
				t.Errorf("asked for %+v, want %+v", got, c.want)
			}
			if err == nil && (r.PreUsage.GetUsageBytes() != 300 || r.PostUsage.GetUsageBytes() != math.MaxInt64) {
				t.Errorf("usage: %v", r)
			}
		})
	}
}

func TestControllerReclaimSpace(t *testing.T) {
	for name, c := range map[string]struct {
		req  *reclaimspace.ControllerReclaimSpaceRequest
		code codes.Code
		says string
	}{
		"of nobody":        {&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "well", Parameters: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "x"}}, codes.OK, ""},
		"not now":          {&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "there"}, codes.FailedPrecondition, "heal it first"},
		"not of this one":  {&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "raw"}, codes.Unimplemented, "raw"},
		"no volume_id":     {&reclaimspace.ControllerReclaimSpaceRequest{}, codes.InvalidArgument, "volume_id"},
		"other parameters": {&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "well", Parameters: map[string]string{"pool": "1"}}, codes.InvalidArgument, "parameters"},
		"no such volume":   {&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "elsewhere"}, codes.NotFound, "elsewhere"},
		"a wrong secret":   {&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "sealed", Secrets: map[string]string{"passphrase": "open, barley"}}, codes.Unauthenticated, "(withheld)"},
		"the right one":    {&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "sealed", Secrets: map[string]string{"passphrase": "open, sesame"}}, codes.OK, ""},
	} {
		_, conn, _ := rig(t, there())
		r, err := reclaimspace.NewReclaimSpaceControllerClient(conn).ControllerReclaimSpace(t.Context(), c.req)
		if status.Code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v, %v, want %v", name, r, err, c.code)
		}
		if err == nil && (r.PreUsage != nil || r.PostUsage != nil) {
			t.Errorf("%s: %v, and nobody can tell", name, r)
		}
	}
}

// TestEncryptionKeyRotate: the new passphrase comes by itself or, as the sidecar has
// it, among the secrets.
func TestEncryptionKeyRotate(t *testing.T) {
	type request = encryptionkeyrotation.EncryptionKeyRotateRequest
	old := map[string]string{"passphrase": "open, sesame"}
	both := map[string]string{"passphrase": "open, sesame", SecretNewPassphrase: "open, oats"}
	accessOnly := &wire.VolumeCapability{AccessMode: &wire.VolumeCapability_AccessMode{Mode: wire.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}}
	for name, c := range map[string]struct {
		req    *request
		code   codes.Code
		says   string
		sealed string // with this, afterwards
	}{
		"by itself":           {&request{VolumeId: "sealed", VolumePath: "/v", EncryptionKey: "open, oats", Secrets: old, VolumeCapability: mountOf("ext4")}, codes.OK, "", "open, oats"},
		"as the sidecar asks": {&request{VolumeId: "sealed", Secrets: both, VolumeCapability: accessOnly, Parameters: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "x"}}, codes.OK, "", "open, oats"},
		"no volume_id":        {&request{EncryptionKey: "open, oats", Secrets: old}, codes.InvalidArgument, "volume_id", "open, sesame"},
		"no new passphrase":   {&request{VolumeId: "sealed", Secrets: old}, codes.InvalidArgument, SecretNewPassphrase, "open, sesame"},
		"too long a key":      {&request{VolumeId: "sealed", Secrets: old, EncryptionKey: strings.Repeat("k", 5000)}, codes.InvalidArgument, "encryption_key", "open, sesame"},
		"no block device":     {&request{VolumeId: "sealed", EncryptionKey: "open, oats", Secrets: old, VolumeCapability: blockUse()}, codes.InvalidArgument, "the request is for a block device", "open, sesame"},
		"other parameters":    {&request{VolumeId: "sealed", Secrets: both, Parameters: map[string]string{"pool": "1"}}, codes.InvalidArgument, "parameters", "open, sesame"},
		"no such volume":      {&request{VolumeId: "elsewhere", Secrets: both}, codes.NotFound, "elsewhere", "open, sesame"},
		"a wrong secret":      {&request{VolumeId: "sealed", EncryptionKey: "open, oats", Secrets: map[string]string{"passphrase": "open, barley"}}, codes.Unauthenticated, "(withheld)", "open, sesame"},
		"not encrypted":       {&request{VolumeId: "there", EncryptionKey: "open, oats", Secrets: old}, codes.InvalidArgument, "not encrypted", "open, sesame"},
	} {
		m := there()
		_, conn, log := rig(t, m)
		_, err := encryptionkeyrotation.NewEncryptionKeyRotationControllerClient(conn).EncryptionKeyRotate(t.Context(), c.req)
		if status.Code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) || m.sealed["sealed"] != c.sealed {
			t.Errorf("%s: %v, want %v; sealed with %q", name, err, c.code, m.sealed["sealed"])
		}
		if strings.Contains(fmt.Sprint(err)+log.String(), "open, ") {
			t.Errorf("%s: a passphrase is told: %v\n%s", name, err, log)
		}
		if _, asked := m.last().(drivebay.KeyRequest); asked == (c.code == codes.InvalidArgument && c.says != "not encrypted") {
			t.Errorf("%s: the engine was asked: %v", name, asked)
		}
	}
}
