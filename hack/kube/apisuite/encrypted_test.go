//go:build kube

package apisuite

import (
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/csi/csitest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func dial(t *testing.T, endpoint string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestKubeEncrypted is the life of an encrypted volume that the controller makes. Its passphrase is in the calls to the
// node only: it is in no object, no version of an object that the API server has ever stored, no audit log, no log of
// ours, no record and no error.
func TestKubeEncrypted(t *testing.T) {
	const right, wrong, name = "open, sesame of the caravan", "open, barley of the caravan", "pvc-encrypted"
	a := Up(t)
	said := &lines{}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(said, t.Output()), &slog.HandlerOptions{Level: slog.LevelDebug}))
	n := newLoggedNode(t, a, "node-1", 2, log)
	c, _ := newLoggedController(t, a.Config(), log)
	ready(t, c, "node-1")
	controller := wire.NewControllerClient(dial(t, serve(t, csi.New(nil, csi.Options{Version: "test", Cluster: c, Log: log}))))
	node := wire.NewNodeClient(dial(t, serve(t, csi.New(n.drives, csi.Options{Version: "test", NodeID: n.name, Volumes: n.engine, NodeOnly: true, Log: log}))))

	answers := func(what string, err error, want codes.Code) {
		t.Helper()
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if err != nil {
			_, _ = said.Write([]byte(err.Error()))
		}
	}
	secrets := func(passphrase string) map[string]string {
		return map[string]string{drivebay.SecretPassphrase: passphrase}
	}
	use := &wire.VolumeCapability{AccessMode: &wire.VolumeCapability_AccessMode{Mode: wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{}}}
	parameters := map[string]string{drivebay.ParameterEncryption: drivebay.EncryptionLUKS2, drivebay.ParameterBacking: "lvm"}
	room, err := controller.GetCapacity(t.Context(), &wire.GetCapacityRequest{Parameters: parameters})
	if answers("capacity", err, codes.OK); room.GetAvailableCapacity() == 0 {
		t.Error("there is no room for encrypted volumes")
	}
	made, err := controller.CreateVolume(t.Context(), &wire.CreateVolumeRequest{Name: name, Parameters: parameters, Secrets: secrets(right),
		VolumeCapabilities: []*wire.VolumeCapability{use}, CapacityRange: &wire.CapacityRange{RequiredBytes: gib}})
	answers("create", err, codes.OK)
	id := made.GetVolume().GetVolumeId()
	o := n.object(t, volumesOf(t, a), name, "is made", isPhase("Ready"))
	if !o.Status.Encrypted || o.Spec.Class.Encryption != "luks2" {
		t.Errorf("%+v", o)
	}
	const path = kubelet + "/plugins/pvc-encrypted"
	if err := (csitest.Simulated{Machine: n.sim, Root: kubelet}).MakeFolder(path); err != nil {
		t.Fatal(err)
	}
	stage := func(passphrase string) error {
		_, err := node.NodeStageVolume(t.Context(), &wire.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: path, VolumeCapability: use, Secrets: secrets(passphrase)})
		return err
	}
	unstage := func() error {
		_, err := node.NodeUnstageVolume(t.Context(), &wire.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: path})
		return err
	}
	n.restart(t, a) // the volume that was never used is the same one afterwards
	node = wire.NewNodeClient(dial(t, serve(t, csi.New(n.drives, csi.Options{Version: "test", NodeID: n.name, Volumes: n.engine, NodeOnly: true, Log: log}))))
	answers("stage without a passphrase", stage(""), codes.InvalidArgument)
	answers("stage", stage(right), codes.OK)
	answers("stage with another passphrase", stage(wrong), codes.Unauthenticated)
	grown, err := controller.ControllerExpandVolume(t.Context(), &wire.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &wire.CapacityRange{RequiredBytes: 2 * gib}, Secrets: secrets(right)})
	if answers("expand", err, codes.OK); !grown.GetNodeExpansionRequired() {
		t.Error("the node is not asked to grow it")
	}
	grow := func(passphrase string) error {
		_, err := node.NodeExpandVolume(t.Context(), &wire.NodeExpandVolumeRequest{VolumeId: id, VolumePath: path, StagingTargetPath: path, Secrets: secrets(passphrase)})
		return err
	}
	answers("expand on the node with another passphrase", grow(wrong), codes.Unauthenticated)
	answers("expand on the node", grow(right), codes.OK)
	answers("unstage", unstage(), codes.OK)
	answers("stage with another passphrase", stage(wrong), codes.Unauthenticated)
	answers("stage again", stage(right), codes.OK)
	answers("unstage", unstage(), codes.OK)
	records, err := n.store.Volumes()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal([]any{records, n.engine.Volumes(), n.drives.Events(0, 0), c.Volumes()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = controller.DeleteVolume(t.Context(), &wire.DeleteVolumeRequest{VolumeId: id, Secrets: secrets(right)})
	answers("delete", err, codes.OK)

	places := map[string]string{"logs and errors": said.String(), "records and events": string(kept)}
	inAPI := ""
	err = filepath.WalkDir(a.dir, func(path string, e fs.DirEntry, err error) error { // of etcd, the API server and its audit log
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		inAPI += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	places["files of the API server"] = inAPI
	for place, text := range places {
		if !strings.Contains(text, id) { // or nothing was searched
			t.Errorf("%s do not name the volume", place)
		}
		if strings.Contains(text, "of the caravan") {
			t.Errorf("%s have a passphrase", place)
		}
	}
}
