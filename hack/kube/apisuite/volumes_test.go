//go:build kube

package apisuite

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/hostsim"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requested is the object by which a controller requests a volume of a node.
func requested(node, name string) *v1alpha1.Volume {
	return &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: drivebay.VolumeID(name), Labels: map[string]string{"drivebay.io/node": node}},
		Spec: v1alpha1.VolumeSpec{Node: node, Name: name, Mode: v1alpha1.ModeFilesystem, Attempt: 1, Size: v1alpha1.VolumeSize{Required: gib},
			Class: &v1alpha1.VolumeClass{Drives: "any", Backing: "partition", Wipe: "discard", FSType: "ext4"}},
	}
}

// TestKubeNodeVolumes: a node shows its volumes, does what objects request, and loses no data with an object.
func TestKubeNodeVolumes(t *testing.T) {
	a := Up(t)
	all := volumesOf(t, a)
	n := newNode(t, a, "node-1", 3)
	if _, err := n.engine.CreateVolume(t.Context(), requestFor("own", gib)); err != nil {
		t.Fatal(err)
	}
	own := n.object(t, all, "own", "is shown", isPhase(v1alpha1.VolumeMade))
	if own.Spec.Name != "own" || own.Spec.Attempt != 0 || own.Status.Capacity != gib || own.Status.Location.Partition == "" {
		t.Errorf("%+v", own)
	}

	t.Run("deleted object", func(t *testing.T) {
		if err := all.Delete(t.Context(), own.Name, own.UID); err != nil {
			t.Fatal(err)
		}
		again := n.object(t, all, "own", "is shown again", func(o *v1alpha1.Volume) bool { return o.UID != own.UID && isPhase(v1alpha1.VolumeMade)(o) })
		if again.Status.Location.Partition != own.Status.Location.Partition {
			t.Error("it is another volume")
		}
		if n.calls.create+n.calls.delete != 0 {
			t.Errorf("%d creations and %d deletions", n.calls.create, n.calls.delete)
		}
	})

	t.Run("requested", func(t *testing.T) {
		if _, err := all.Create(t.Context(), requested("node-1", "pvc-1"), "drivebay-controller"); err != nil {
			t.Fatal(err)
		}
		o := n.object(t, all, "pvc-1", "is made", isPhase(v1alpha1.VolumeMade))
		v, ok := n.engine.Volumes().Get(o.Name)
		if !ok || v.FSType != "ext4" || v.Size != gib {
			t.Fatalf("the engine has %+v", v)
		}
		t.Log(a.Kubectl(t, "", "get", "volumes"))

		a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"attempt":2,"size":{"required":2147483648}}}`)
		o = n.object(t, all, "pvc-1", "is larger", func(o *v1alpha1.Volume) bool { return o.Status.Capacity == 2*gib && isPhase(v1alpha1.VolumeMade)(o) })
		a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"attempt":3,"size":{"required":9000000000000}}}`)
		o = n.object(t, all, "pvc-1", "cannot be larger", func(o *v1alpha1.Volume) bool { return o.Status.Error != nil && isPhase(v1alpha1.VolumeMade)(o) })
		if o.Status.Error.Code != "Range" || o.Status.Capacity != 2*gib {
			t.Errorf("%+v", o.Status)
		}
		a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"attempt":4,"size":{"required":2147483648}}}`)
		n.object(t, all, "pvc-1", "has its error cleared", func(o *v1alpha1.Volume) bool { return o.Status.Error == nil && isPhase(v1alpha1.VolumeMade)(o) })

		a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"release":"Delete"}}`)
		eventually(t, "the object of pvc-1 is gone", func() bool {
			_, err := all.Get(t.Context(), o.Name)
			return apierrors.IsNotFound(err)
		})
		if _, ok := n.engine.Volumes().Get(o.Name); ok {
			t.Error("the engine still has it")
		}
	})

	t.Run("refused", func(t *testing.T) {
		large := requested("node-1", "large")
		large.Spec.Size.Required = 1 << 50
		if _, err := all.Create(t.Context(), large, "drivebay-controller"); err != nil {
			t.Fatal(err)
		}
		o := n.object(t, all, "large", "is refused", isPhase(v1alpha1.VolumeRefused))
		if o.Status.Error.Code != "Range" {
			t.Errorf("%+v", o.Status.Error)
		}
		tried := n.calls.create
		a.Kubectl(t, "", "label", "volumes.drivebay.io", o.Name, "touched=yes")
		time.Sleep(time.Second)
		if n.calls.create != tried {
			t.Error("it was tried again without a request")
		}
		a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"attempt":2}}`)
		eventually(t, "the next request is tried", func() bool { return n.calls.create > tried })
		a.Kubectl(t, "", "delete", "volumes.drivebay.io", o.Name)
	})

	t.Run("restart", func(inner *testing.T) {
		before := n.object(t, all, "own", "is shown", isPhase(v1alpha1.VolumeMade))
		n.restart(t, a)
		if _, err := n.engine.CreateVolume(inner.Context(), requestFor("second", gib)); err != nil {
			t.Fatal(err)
		}
		second := n.object(t, all, "second", "is shown", isPhase(v1alpha1.VolumeMade))
		time.Sleep(3 * time.Second)
		for _, was := range []*v1alpha1.Volume{before, second} {
			if now, err := all.Get(t.Context(), was.Name); err != nil || now.ResourceVersion != was.ResourceVersion {
				t.Errorf("the object was written without a change: %v, %v\n%+v", err, now, was)
			}
		}
	})

	t.Run("deleted by an operator", func(t *testing.T) {
		if err := n.engine.DeleteVolume(t.Context(), drivebay.VolumeID("second")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the object is gone", func() bool {
			_, err := all.Get(t.Context(), drivebay.VolumeID("second"))
			return apierrors.IsNotFound(err)
		})
	})

	t.Run("forgotten by an operator", func(t *testing.T) {
		o := n.object(t, all, "own", "is shown", isPhase(v1alpha1.VolumeMade))
		pull(t, n, o.Status.Location.Drives[0])
		if err := n.engine.ForgetVolume(t.Context(), o.Name); err != nil {
			t.Fatal(err)
		}
		o = n.object(t, all, "own", "is missing", isPhase(v1alpha1.VolumeMissing))
		if o.Status.OperationalStatus != "MISSING" || len(o.Status.Findings) == 0 {
			t.Errorf("%+v", o.Status)
		}
		created := n.calls.create
		a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"attempt":5}}`)
		n.object(t, all, "own", "stays missing", isPhase(v1alpha1.VolumeMissing))
		if n.calls.create != created {
			t.Error("an empty volume was made in its place")
		}
	})
}

// pull takes a drive out of its node and waits until the node has noticed.
func pull(t *testing.T, n *node, id string) {
	t.Helper()
	find := func() *drivebay.Drive {
		for _, d := range n.drives.Snapshot().Drives {
			if d.ID == id {
				return &d
			}
		}
		t.Fatalf("node %s has no drive %s", n.name, id)
		return nil
	}
	if err := n.sim.Inject(hostsim.Fault{Drive: find().Serial, Fault: "vanish"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "drive "+id+" is offline", func() bool { return find().Status == drivebay.StatusOffline })
}

// TestKubeVolumeRules sends objects that the API server has to refuse, whoever sends them.
func TestKubeVolumeRules(t *testing.T) {
	a := Up(t)
	all := volumesOf(t, a)
	o, err := all.Create(t.Context(), requested("node-1", "pvc-1"), "drivebay-controller")
	if err != nil {
		t.Fatal(err)
	}
	o.Status = v1alpha1.VolumeStatus{Capacity: gib, Phase: v1alpha1.VolumeMade}
	o.ManagedFields = nil
	if _, err := all.ApplyStatus(t.Context(), o, "drivebay-node"); err != nil {
		t.Fatal(err)
	}
	for patch, want := range map[string]string{
		`{"spec":{"node":"node-2"}}`:                "cannot change its node",
		`{"spec":{"name":"pvc-2"}}`:                 "name of a volume cannot change",
		`{"spec":{"name":null}}`:                    "name of a volume cannot change",
		`{"spec":{"mode":"Block"}}`:                 "mode of a volume cannot change",
		`{"spec":{"class":{"backing":"lvm"}}}`:      "class of a volume cannot change",
		`{"spec":{"class":null}}`:                   "class of a volume cannot change",
		`{"spec":{"source":{"volume":"abc"}}}`:      "source of a volume cannot change",
		`{"spec":{"attempt":0}}`:                    "never decreases",
		`{"spec":{"attempt":null}}`:                 "never decreases",
		`{"spec":{"size":{"required":1}}}`:          "never shrinks",
		`{"spec":{"size":{"limit":1}}}`:             "less than the required size",
		`{"spec":{"release":"Keep"}}`:               "Unsupported value",
		`{"spec":{"size":{"required":"a lot"}}}`:    "must be of type integer",
		`{"spec":{"class":{"encryption":"rot13"}}}`: "Unsupported value",
	} {
		if got := a.Refused(t, "", "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", patch); !strings.Contains(got, want) {
			t.Errorf("%s: %s", patch, got)
		}
	}
	a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"size":{"required":9000000000}}}`)
	a.Kubectl(t, "", "patch", "volumes.drivebay.io", o.Name, "--type=merge", "-p", `{"spec":{"size":{"required":1073741824}}}`) // back to what it has
	wrong := requested("node-1", "pvc-3")
	wrong.Name = "pvc-3"
	if _, err := all.Create(t.Context(), wrong, "drivebay-controller"); err == nil || !strings.Contains(err.Error(), "26 characters") {
		t.Errorf("a name that is no id: %v", err)
	}
}
