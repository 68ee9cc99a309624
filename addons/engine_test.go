package addons

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const root = "/var/lib/kubelet"

// plugin is the whole of it on a simulated machine, behind both sockets.
type plugin struct {
	*testing.T
	sim         *hostsim.Machine
	volumes     *volume.Engine
	endpoint    string // of CSI
	server      *Server
	csi, addons *grpc.ClientConn
}

func newPlugin(t *testing.T, without ...string) *plugin {
	sim, err := hostsim.New(hostsim.Spec{Without: without, Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Size: "60GB"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	var claim drivebay.Selectors
	if err := claim.UnmarshalText([]byte("all")); err != nil {
		t.Fatal(err)
	}
	st := store.Memory()
	drives := drivemgr.New(sim, st, drivemgr.Options{Claim: claim})
	volumes, err := volume.New(sim, drives, st, lvm.New(sim, ""), volume.Options{Node: "node-1", Roots: []string{root}, DRBD: sim.DRBD})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []func(context.Context) error{drives.Run, volumes.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	endpoint := serve(t, csi.New(drives, csi.Options{NodeID: "node-1", Volumes: volumes}))
	server := New(drives, Options{Name: csi.Name, Volumes: volumes, Replication: volumes})
	return &plugin{t, sim, volumes, endpoint, server, dial(t, endpoint), dial(t, serve(t, server))}
}

func (p *plugin) eventually(what string, is func() bool) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("not in time: %s", what)
		}
	}
}

// use makes a volume and stages it at its name.
func (p *plugin) use(name string, parameters, secrets map[string]string) (id, path string) {
	p.Helper()
	how := &wire.VolumeCapability{AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{}},
		AccessMode: &wire.VolumeCapability_AccessMode{Mode: wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	p.eventually("it is made", func() bool {
		v, err := wire.NewControllerClient(p.csi).CreateVolume(p.Context(), &wire.CreateVolumeRequest{Name: name, VolumeCapabilities: []*wire.VolumeCapability{how}, Parameters: parameters, Secrets: secrets})
		id = v.GetVolume().GetVolumeId()
		return err == nil
	})
	path = root + "/" + name
	if _, err := wire.NewNodeClient(p.csi).NodeStageVolume(p.Context(), &wire.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: path, VolumeCapability: how, Secrets: secrets}); err != nil {
		p.Fatal(err)
	}
	return id, path
}

// condition is what NodeGetVolumeStats says of a volume at a path.
func (p *plugin) condition(id, path string) condition {
	p.Helper()
	out, err := csi.Call(p.Context(), p.endpoint, "NodeGetVolumeStats", fmt.Sprintf(`{"volumeId": %q, "volumePath": %q, "stagingTargetPath": %q}`, id, path, path))
	if err != nil {
		p.Fatal(err)
	}
	var got struct{ VolumeCondition condition }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		p.Fatal(err)
	}
	return got.VolumeCondition
}

// heals calls NodeHealer for a volume that is broken, and holds its answer against CSI's.
func (p *plugin) heals(id, path string, abnormal bool) {
	p.Helper()
	p.eventually("CSI sees that it is broken", func() bool { return p.condition(id, path).Abnormal })
	p.eventually("both sockets say the same", func() bool { // more may become known between the two calls
		r, err := healer.NewHealerNodeClient(p.addons).NodeHealer(p.Context(), &healer.NodeHealerRequest{VolumeId: id, VolumePath: path, StagingTargetPath: path})
		if err != nil {
			p.Fatal(err)
		}
		is := p.condition(id, path)
		return r.Abnormal == abnormal && r.Abnormal == is.Abnormal && r.Message == is.Message
	})
}

func (p *plugin) inject(f hostsim.Fault) {
	p.Helper()
	if err := p.sim.Inject(f); err != nil {
		p.Fatal(err)
	}
}

// TestWithTheEngine: what is asked here is done there, and both sockets tell the same.
func TestWithTheEngine(t *testing.T) {
	p := newPlugin(t)
	id, path := p.use("plain", nil, nil)
	p.inject(hostsim.Fault{Drive: path, Fault: "fs-unmount"})
	p.heals(id, path, false)
	p.inject(hostsim.Fault{Drive: path, Fault: "fs-read-only"})
	p.heals(id, path, false)

	space := reclaimspace.NewReclaimSpaceNodeClient(p.addons)
	if _, err := space.NodeReclaimSpace(t.Context(), &reclaimspace.NodeReclaimSpaceRequest{VolumeId: id, StagingTargetPath: path}); err != nil {
		t.Errorf("reclaim: %v", err)
	}
	if _, err := space.NodeReclaimSpace(t.Context(), &reclaimspace.NodeReclaimSpaceRequest{VolumeId: id, VolumePath: path + "2"}); status.Code(err) != codes.NotFound {
		t.Errorf("reclaim elsewhere: %v", err)
	}

	sealed, at := p.use("sealed", map[string]string{drivebay.ParameterEncryption: drivebay.EncryptionLUKS2}, map[string]string{"passphrase": "open, sesame"})
	rotate := func(old, next string) error {
		_, err := encryptionkeyrotation.NewEncryptionKeyRotationControllerClient(p.addons).EncryptionKeyRotate(t.Context(), &encryptionkeyrotation.EncryptionKeyRotateRequest{
			VolumeId: sealed, VolumePath: at, Secrets: map[string]string{"passphrase": old}, EncryptionKey: next})
		return err
	}
	for _, c := range []struct {
		old, next string
		want      codes.Code
	}{{"open, barley", "open, oats", codes.Unauthenticated}, {"open, sesame", "open, oats", codes.OK}, {"open, sesame", "open, oats", codes.OK}, {"open, sesame", "open, rye", codes.Unauthenticated}, {"", "open, rye", codes.Unauthenticated}, {"open, oats", "", codes.InvalidArgument}} {
		if err := rotate(c.old, c.next); status.Code(err) != c.want {
			t.Errorf("from %q to %q: %v, want %v", c.old, c.next, err, c.want)
		}
	}
	if _, err := space.NodeReclaimSpace(t.Context(), &reclaimspace.NodeReclaimSpaceRequest{VolumeId: sealed, VolumePath: at}); status.Code(err) != codes.Unimplemented {
		t.Errorf("reclaim of an encrypted volume: %v", err)
	}

	for _, name := range []string{"nvme0n1", "nvme1n1"} {
		p.inject(hostsim.Fault{Drive: name, Fault: "vanish"})
	}
	p.heals(id, path, true) // nothing to be done, and that is said
}
