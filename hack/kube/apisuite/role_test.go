//go:build kube

package apisuite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// controllerProcess is `drivebay serve --role=controller`.
type controllerProcess struct {
	program *program
	client  csi.ControllerClient
	about   csi.IdentityClient
}

func (a *API) controllerProcess(t *testing.T) *controllerProcess {
	t.Helper()
	return a.controllerProcessAs(t, a.Kubeconfig)
}

// controllerProcessAs starts a controller that connects with a kubeconfig; more are further arguments of `drivebay serve`.
func (a *API) controllerProcessAs(t *testing.T, kubeconfig string, more ...string) *controllerProcess {
	t.Helper()
	socket := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	p := &controllerProcess{program: a.startProgram(t, a.file("drivebay"), filepath.Join(t.TempDir(), "controller.log"),
		append([]string{"serve", "--role=controller", "--kubeconfig", kubeconfig, "--csi-endpoint", socket}, more...)...)}
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p.client, p.about = csi.NewControllerClient(conn), csi.NewIdentityClient(conn)
	return p
}

func (p *controllerProcess) ready(t *testing.T) string {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r, err := p.about.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	if err != nil || !r.Ready.GetValue() {
		return p.program.tail()
	}
	return ""
}

func (p *controllerProcess) create(t *testing.T, name string) (*csi.Volume, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	r, err := p.client.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: gib},
		VolumeCapabilities: []*csi.VolumeCapability{{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}},
		AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{"topology.drivebay.io/node": "node-1"}}}},
	})
	return r.GetVolume(), err
}

// TestKubeRoles: of two controllers one leads; after its death the other one does, with the same volumes. The daemon of the
// node serves no controller service.
func TestKubeRoles(t *testing.T) {
	a := Up(t)
	socket := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	sim := filepath.Join(a.Root, "examples/rack24.yaml")
	d := a.Daemon(t, "node-1", sim, a.Kubeconfig, "--role", "node", "--csi-endpoint", socket, "--claim", "all")
	one := a.controllerProcess(t)
	Eventually(t, 60*time.Second, "the first controller leads", func() string { return one.ready(t) })
	two := a.controllerProcess(t)
	Eventually(t, 10*time.Second, "the second controller answers", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := two.about.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true)); err != nil {
			return err.Error()
		}
		return ""
	})
	if two.ready(t) == "" {
		t.Error("both controllers are ready")
	}
	var v *csi.Volume
	Eventually(t, 60*time.Second, "a volume is made", func() string {
		var err error
		if v, err = one.create(t, "pvc-1"); err != nil {
			return err.Error()
		}
		return ""
	})
	if _, err := two.create(t, "pvc-2"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "does not lead") {
		t.Errorf("the controller that does not lead makes a volume: %v", err)
	}
	if out := d.CLI(t, "volumes"); !strings.Contains(out, "pvc-1") {
		t.Errorf("the node has no such volume: %s", out)
	}
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := csi.NewControllerClient(conn).ListVolumes(t.Context(), &csi.ListVolumesRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("the node serves the controller service: %v", err)
	}

	one.program.kill()
	took := Eventually(t, 60*time.Second, "the second controller leads", func() string { return two.ready(t) })
	t.Logf("the second controller leads after %v", took)
	again, err := two.create(t, "pvc-1")
	if err != nil || again.GetVolumeId() != v.GetVolumeId() {
		t.Errorf("the same volume: %v, %v", again, err)
	}
	if _, err := two.client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.GetVolumeId()}); err != nil {
		t.Error(err)
	}
	all := volumesOf(t, a)
	if o, err := all.Get(t.Context(), drivebay.VolumeID("pvc-1")); err == nil {
		t.Errorf("its object is still there: %s", o.Status.Phase)
	}

	// The node is killed while it has volumes, and nothing is written after its start.
	if v, err = two.create(t, "pvc-3"); err != nil {
		t.Fatal(err)
	}
	before, err := all.Get(t.Context(), v.GetVolumeId())
	if err != nil {
		t.Fatal(err)
	}
	d.Kill()
	d.Start(t)
	time.Sleep(5 * time.Second)
	began := time.Now()
	time.Sleep(10 * time.Second)
	if w := a.Writes(t, "volumes", "drivebay", began); len(w) != 0 {
		t.Errorf("the steady state writes: %+v", w)
	}
	after, err := all.Get(t.Context(), v.GetVolumeId())
	if err != nil || after.Status.Phase != v1alpha1.VolumeMade || after.Status.Location.Partition != before.Status.Location.Partition {
		t.Errorf("%+v, %v", after, err)
	}
}
