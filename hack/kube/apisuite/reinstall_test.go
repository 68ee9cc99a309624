//go:build kube

package apisuite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reinstall starts a node that has nothing but its drives.
func (n *node) reinstall(t *testing.T, a *API, meanwhile func()) {
	t.Helper()
	n.stopKube()
	n.stopEngine()
	n.store = store.Memory()
	meanwhile()
	n.startEngine(t)
	n.startKube(t, a)
}

// TestKubeReinstall: volumes of a node that lost its records are found on its drives, and have their names again from the
// objects; a name is not given to another volume.
func TestKubeReinstall(t *testing.T) {
	a := Up(t)
	all := volumesOf(t, a)
	n := newNode(t, a, "node-1", 3)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1")
	v, err := create(t, c, requestFor("pvc-1", gib))
	if err != nil {
		t.Fatal(err)
	}
	before := n.object(t, all, "pvc-1", "is made", isPhase(v1alpha1.VolumeMade))
	had, _ := n.engine.Volumes().Get(v.ID)

	n.reinstall(t, a, func() {})
	eventually(t, "the volume has its name again", func() bool {
		v, ok := n.engine.Volumes().Get(v.ID)
		return ok && v.Name == "pvc-1"
	})
	now, _ := n.engine.Volumes().Get(v.ID)
	if now.Location.Partition != had.Location.Partition || now.Created.Unix() != had.Created.Unix() || now.Parameters[drivebay.ParameterBacking] != had.Parameters[drivebay.ParameterBacking] {
		t.Errorf("had %+v, has %+v", had, now)
	}
	o := n.object(t, all, "pvc-1", "is there", isPhase(v1alpha1.VolumeMade))
	if o.UID != before.UID || len(o.Status.Findings) != 0 {
		t.Errorf("%+v", o.Status)
	}
	if again, err := create(t, c, requestFor("pvc-1", gib)); err != nil || again.ID != v.ID {
		t.Errorf("the same request: %+v, %v", again, err)
	}
	if n.calls.create+n.calls.delete != 0 {
		t.Errorf("%d creations and %d deletions", n.calls.create, n.calls.delete)
	}

	// The object remembers another volume: nothing is claimed about the one on the drives.
	n.reinstall(t, a, func() {
		o.Status.Location.Partition = "00000000-0000-4000-8000-000000000000"
		if _, err := all.ApplyStatus(t.Context(), &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID}, Status: o.Status}, client.NodeOwner); err != nil {
			t.Fatal(err)
		}
	})
	n.object(t, all, "pvc-1", "contradicts", func(o *v1alpha1.Volume) bool {
		return len(o.Status.Findings) == 1 && o.Status.Findings[0].Reason == "AnotherInstance"
	})
	time.Sleep(2 * time.Second)
	if v, _ := n.engine.Volumes().Get(v.ID); v.Name != "" {
		t.Errorf("another volume got the name %q", v.Name)
	}
	// A person who deletes the object accepts what is on the drives.
	o = n.object(t, all, "pvc-1", "is there", func(*v1alpha1.Volume) bool { return true })
	if err := all.Delete(t.Context(), o.Name, o.UID); err != nil {
		t.Fatal(err)
	}
	n.object(t, all, "pvc-1", "is shown anew", func(now *v1alpha1.Volume) bool {
		return now.UID != o.UID && isPhase(v1alpha1.VolumeMade)(now) && now.Status.Location.Partition == had.Location.Partition
	})
}

// TestKubeReinstallClaims: a drive that was claimed in its object is claimed again on a node that lost its records.
func TestKubeReinstallClaims(t *testing.T) {
	a := Up(t)
	d := a.Daemon(t, "rack24", filepath.Join(a.Root, "examples/rack24.yaml"), a.Kubeconfig, "--claim", "type=nvme")
	mirrored(t, a, d)
	name, id := inBay(t, d, "Slot 08")
	claimed := func() string {
		if v, _ := d.Snapshot(t).Get(id); v.Claim == nil {
			o, _ := json.Marshal(drives(t, a, d.Node)[id].Status)
			return string(o)
		}
		return ""
	}
	a.Kubectl(t, "", "patch", "drive", name, "--type", "merge", "-p", `{"spec":{"claim":true}}`)
	Eventually(t, 20*time.Second, "the drive is claimed", claimed)
	d.CLI(t, "unclaim", id)
	d.Stop(t)
	d.Start(t)
	mirrored(t, a, d)
	time.Sleep(3 * time.Second)
	if claimed() == "" {
		t.Error("a restart repeats a claim that was withdrawn on the node")
	}
	d.CLI(t, "claim", id)
	Eventually(t, 90*time.Second, "the object shows the claim", func() string { // a change on the node may wait for the pace of writes
		return map[bool]string{true: "", false: "no"}[drives(t, a, d.Node)[id].Status.ClaimedBy != ""]
	})
	d.Stop(t)
	time.Sleep(1100 * time.Millisecond) // an object has whole seconds
	if err := os.RemoveAll(filepath.Join(d.dir, "state")); err != nil {
		t.Fatal(err)
	}
	d.Start(t)
	Eventually(t, 30*time.Second, "the drive is claimed again", claimed)
}
