package csiaddons

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	driver   = "drivebay.io"
	stagings = "/var/lib/kubelet/plugins/kubernetes.io/csi"
	old, now = "open, sesame", "open, oats"
)

var use = object{"mount": object{"fs_type": "ext4"}, "access_mode": object{"mode": "SINGLE_NODE_WRITER"}}

func TestPrograms(t *testing.T) {
	s := newStation(t)
	eventually(t, "Probe is ready", func() bool {
		out, err := s.ask(t, "Probe")
		return err == nil && strings.Contains(out, "probesucceeded:ready:{value:true}")
	})
	t.Run("GetIdentity", func(t *testing.T) {
		if out, err := s.ask(t, "GetIdentity"); err != nil || !strings.Contains(out, `name:"drivebay.io"vendor_version:`) {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("GetCapabilities", func(t *testing.T) {
		out, err := s.ask(t, "GetCapabilities")
		for _, want := range []string{"service:{type:CONTROLLER_SERVICE}", "service:{type:NODE_SERVICE}", "reclaim_space:{type:OFFLINE}", "reclaim_space:{type:ONLINE}", "encryption_key_rotation:{type:ENCRYPTIONKEYROTATION}"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%v: no %s: %s", err, want, out)
			}
		}
	})
	plain, sealed := s.volume(t, "plain", nil), s.volume(t, "sealed", object{"passphrase": old, "newPassphrase": now})
	t.Run("reclaim", func(t *testing.T) { reclaim(t, s, plain) })
	t.Run("rotate", func(t *testing.T) { rotate(t, s, sealed) })
	t.Run("sidecar", func(t *testing.T) { sidecar(t, s) })
}

// volume makes a volume and what a cluster would know of it. With secrets it is encrypted.
func (s *station) volume(t *testing.T, name string, secrets object) (id string) {
	t.Helper()
	request := object{"name": name, "volume_capabilities": []any{use}, "capacity_range": object{"required_bytes": 1 << 30}}
	csi := object{"driver": driver, "volumeAttributes": object{"storage.kubernetes.io/csiProvisionerIdentity": "x"}}
	if secrets != nil {
		request["parameters"], request["secrets"] = object{"drivebay.io/encryption": "luks2"}, object{"passphrase": secrets["passphrase"]}
		csi["nodeStageSecretRef"] = object{"name": "passphrase", "namespace": secretsNamespace}
		data := object{}
		for key, word := range secrets {
			data[key] = []byte(word.(string))
		}
		s.cluster.put("/api/v1/namespaces/"+secretsNamespace+"/secrets/passphrase", object{"kind": "Secret", "apiVersion": "v1", "metadata": object{"name": "passphrase"}, "data": data})
	}
	var made struct{ Volume struct{ VolumeId string } }
	eventually(t, "a volume is made", func() bool { return s.csi(t, "CreateVolume", request, &made) == nil })
	csi["volumeHandle"] = made.Volume.VolumeId
	s.cluster.put("/api/v1/persistentvolumes/"+name, object{"kind": "PersistentVolume", "apiVersion": "v1", "metadata": object{"name": name},
		"spec": object{"accessModes": []string{"ReadWriteOnce"}, "volumeMode": "Filesystem", "csi": csi}})
	return made.Volume.VolumeId
}

func (s *station) stage(t *testing.T, id, path, passphrase string) error {
	t.Helper()
	request := object{"volume_id": id, "staging_target_path": path, "volume_capability": use}
	if passphrase != "" {
		request["secrets"] = object{"passphrase": passphrase}
	}
	return s.csi(t, "NodeStageVolume", request, nil)
}

func (s *station) unstage(t *testing.T, id, path string) {
	t.Helper()
	if err := s.csi(t, "NodeUnstageVolume", object{"volume_id": id, "staging_target_path": path}, nil); err != nil {
		t.Fatal(err)
	}
}

// stagingPath is where kubelet stages a volume.
func stagingPath(below, id string) string {
	return filepath.Join(below, driver, fmt.Sprintf("%x", sha256.Sum256([]byte(id))), "globalmount")
}

// reclaim knows where the command looks: it appends the path of the volume to that of
// one which is named like its PersistentVolume.
func reclaim(t *testing.T, s *station, id string) {
	at := stagingPath(stagingPath(stagings, "plain"), id)
	if err := s.stage(t, id, at, ""); err != nil {
		t.Fatal(err)
	}
	out, err := s.ask(t, "NodeReclaimSpace", "-persistentvolume", "plain", "-drivername", driver, "-stagingpath", stagings)
	if err != nil || !strings.Contains(out, `spacereclaimedfor"plain"`) {
		t.Errorf("%v: %s", err, out)
	}
	controller := func(what string) {
		if out, err := s.ask(t, "ControllerReclaimSpace", "-persistentvolume", "plain"); err != nil || !strings.Contains(out, `spacereclaimedfor"plain"`) {
			t.Errorf("of a volume %s: %v: %s", what, err, out)
		}
	}
	controller("in use") // as the manager asks after every NodeReclaimSpace
	s.unstage(t, id, at)
	controller("at rest")
	if out, err := s.ask(t, "ControllerReclaimSpace", "-persistentvolume", "sealed"); err == nil || !strings.Contains(out, "code=Unimplemented") {
		t.Errorf("of one that is encrypted: %v: %s", err, out)
	}
}

func rotate(t *testing.T, s *station, id string) {
	at := stagingPath(stagings, id)
	if err := s.stage(t, id, at, old); err != nil {
		t.Fatal(err)
	}
	if out, err := s.ask(t, "EncryptionKeyRotation", "-persistentvolume", "sealed"); err != nil || !strings.Contains(out, "Encryptionkeyrotationsuccessful") {
		t.Errorf("%v: %s", err, out)
	}
	s.unstage(t, id, at)
	if err := s.stage(t, id, at, old); err == nil || !strings.Contains(err.Error(), "Unauthenticated") {
		t.Errorf("the old passphrase: %v", err)
	}
	if err := s.stage(t, id, at, now); err != nil {
		t.Errorf("the new one: %v", err)
	}
	s.unstage(t, id, at)
}

// sidecar runs with the arguments and the rights that it has in the chart, and is called as the manager calls it.
func sidecar(t *testing.T, s *station) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	l.Close()
	s.cluster.know("csiaddons.openshift.io", "v1alpha1", "CSIAddonsNode")
	s.cluster.put("/api/v1/namespaces/"+namespace+"/pods/drivebay-1", object{"kind": "Pod", "apiVersion": "v1", "metadata": object{"name": "drivebay-1", "namespace": namespace,
		"ownerReferences": []any{object{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "drivebay", "uid": "1"}}}})
	args, rights := sidecarOf(t)
	in := strings.NewReplacer("$(NODE_NAME)", "node-1", "$(POD_NAME)", "drivebay-1", "$(POD_UID)", "2", "$(NAMESPACE)", namespace,
		"/csi/addons.sock", s.socket(), "--controller-port=9070", "--controller-port="+port)
	for i := range args {
		args[i] = in.Replace(args[i])
	}
	s.cluster.restrict(rights)
	defer func() {
		for _, request := range s.cluster.refusals() {
			t.Errorf("the chart does not allow %s", request)
		}
	}()
	line := s.inPod("sidecar", args...)
	s.start(t, line[0], line[1:]...)

	eventually(t, "the sidecar registers the driver", func() bool {
		o, ok := s.cluster.get("/apis/csiaddons.openshift.io/v1alpha1/namespaces/" + namespace + "/csiaddonsnodes/")
		if !ok {
			return false
		}
		it := o["spec"].(object)["driver"].(object)
		return it["name"] == driver && it["nodeID"] == "node-1" && it["endpoint"] == "pod://drivebay-1."+namespace+":"+port
	})
	eventually(t, "it finds a controller service, and leads", func() bool {
		_, ok := s.cluster.get("/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/drivebay-io-csi-addons")
		return ok && s.cluster.wasAsked("PUT /apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases/drivebay-io-csi-addons")
	})
	// It makes its certificate itself, and asks the API server whose the token is.
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	manager := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer of the manager")
	// Its own protocol cannot be imported; the request has one string, as this one has.
	eventually(t, "it passes a call on", func() bool {
		err = conn.Invoke(manager, "/proto.ReclaimSpace/ControllerReclaimSpace", wrapperspb.String("plain"), &emptypb.Empty{})
		return err == nil
	})
	if err := conn.Invoke(manager, "/proto.ReclaimSpace/ControllerReclaimSpace", wrapperspb.String("sealed"), &emptypb.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("of one that is encrypted: %v", err)
	}
	if err := conn.Invoke(t.Context(), "/proto.ReclaimSpace/ControllerReclaimSpace", wrapperspb.String("plain"), &emptypb.Empty{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
	for _, request := range []string{"POST /apis/authentication.k8s.io/v1/tokenreviews", "GET /api/v1/namespaces/" + secretsNamespace + "/secrets/passphrase",
		"POST /api/v1/namespaces/" + namespace + "/events"} {
		eventually(t, request, func() bool { return s.cluster.wasAsked(request) })
	}
}
