//go:build kube

package apisuite

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/internal/store"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKubeHeal: each new text of spec.heal repairs a volume once, also over a restart, and its condition has the result
// or the refusal.
func TestKubeHeal(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 2)
	all := volumesOf(t, a)
	v, err := n.engine.CreateVolume(t.Context(), requestFor("v", gib))
	if err != nil {
		t.Fatal(err)
	}
	const path = kubelet + "/plugins/v"
	if err := (csitest.Simulated{Machine: n.sim, Root: kubelet}).MakeFolder(path); err != nil {
		t.Fatal(err)
	}
	stage := func(options ...string) {
		t.Helper()
		if err := n.engine.StageVolume(t.Context(), drivebay.StageRequest{Volume: v.ID, Path: path, Access: drivebay.AccessWriter, Options: options}); err != nil {
			t.Fatal(err)
		}
	}
	healed := func(text string) *metav1.Condition {
		t.Helper()
		a.Kubectl(t, "", "patch", "volumes.drivebay.io", v.ID, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"heal":%q}}`, text))
		o := n.object(t, all, "v", "has an answer to "+text, func(o *v1alpha1.Volume) bool {
			return o.Status.Healing != nil && o.Status.Healing.Request == text && o.Status.ObservedGeneration == o.Generation
		})
		return apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.VolumeHealed)
	}
	n.object(t, all, "v", "is shown", isPhase(v1alpha1.VolumeMade))
	stage()
	if err := n.sim.UnmountBehind(path); err != nil {
		t.Fatal(err)
	}
	if c := healed("1"); c.Status != metav1.ConditionTrue || c.Reason != "Repaired" {
		t.Errorf("unmounted: %+v", c)
	}
	o := n.object(t, all, "v", "is made", isPhase(v1alpha1.VolumeMade))
	if h := o.Status.Healing; len(h.Repairs) != 1 || h.Repairs[0].Done == "" {
		t.Errorf("%+v", h)
	}
	if c := healed("2"); c.Status != metav1.ConditionTrue || c.Reason != "NothingToRepair" {
		t.Errorf("mounted: %+v", c)
	}
	calls := n.calls.heal
	n.restart(t, a)
	a.Kubectl(t, "", "label", "volumes.drivebay.io", v.ID, "touched=yes")
	time.Sleep(2 * time.Second)
	if calls != 2 || n.calls.heal != 0 {
		t.Errorf("it was healed %d times before the restart, and %d times after it", calls, n.calls.heal)
	}
	if err := n.engine.UnstageVolume(t.Context(), v.ID, path); err != nil {
		t.Fatal(err)
	}
	stage("noatime")
	if err := n.sim.UnmountBehind(path); err != nil {
		t.Fatal(err)
	}
	if c := healed("3"); c.Status != metav1.ConditionFalse || c.Message == "" {
		t.Errorf("with options that are not stored: %+v", c)
	} else {
		t.Log(c.Reason, c.Message)
	}
	a.Kubectl(t, "", "patch", "volumes.drivebay.io", v.ID, "--type=merge", "-p", `{"spec":{"heal":null}}`)
	n.object(t, all, "v", "has no request", func(o *v1alpha1.Volume) bool { return o.Status.Healing == nil })
}

// TestKubeMoveBeforeUse: with spec.moveBeforeUse a volume whose drive leaves is not staged again before it has moved, also if the
// wish was there before the release; after the move the node has no wish any more, and the field stays for the next time.
func TestKubeMoveBeforeUse(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 3)
	all := volumesOf(t, a)
	v, err := n.engine.CreateVolume(t.Context(), requestFor("v", 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	const path = kubelet + "/plugins/v"
	if err := (csitest.Simulated{Machine: n.sim, Root: kubelet}).MakeFolder(path); err != nil {
		t.Fatal(err)
	}
	stage := func() error {
		return n.engine.StageVolume(t.Context(), drivebay.StageRequest{Volume: v.ID, Path: path, Access: drivebay.AccessWriter})
	}
	if err := stage(); err != nil {
		t.Fatal(err)
	}
	n.object(t, all, "v", "is shown", isPhase(v1alpha1.VolumeMade))
	a.Kubectl(t, "", "patch", "volumes.drivebay.io", v.ID, "--type=merge", "-p", `{"spec":{"moveBeforeUse":true}}`)
	n.object(t, all, "v", "has no error while nothing leaves", func(o *v1alpha1.Volume) bool {
		return o.Status.ObservedGeneration == o.Generation && o.Status.Error == nil && !o.Status.MoveBeforeUse
	})
	old := v.Location.Drives[0]
	if err := n.drives.Operate(t.Context(), old, drivebay.LeaveRelease, ""); err != nil {
		t.Fatal(err)
	}
	n.object(t, all, "v", "is to move first", func(o *v1alpha1.Volume) bool { return o.Status.MoveBeforeUse && o.Status.Usage == "RELEASING" })
	if err := n.engine.UnstageVolume(t.Context(), v.ID, path); err != nil {
		t.Fatal(err)
	}
	if err := stage(); !errors.Is(err, drivebay.ErrUnavailable) {
		t.Errorf("staged before it has moved: %v", err)
	}
	var o *v1alpha1.Volume
	Eventually(t, 90*time.Second, "the volume has moved", func() (why string) { // a status that is no answer is written twice a minute
		if o, err = all.Get(t.Context(), v.ID); err != nil {
			return err.Error()
		}
		if o.Status.MoveBeforeUse || o.Status.Usage != "IN_USE" || slices.Contains(o.Status.Location.Drives, old) {
			return fmt.Sprintf("%s on %v, to move first: %v", o.Status.Usage, o.Status.Location.Drives, o.Status.MoveBeforeUse)
		}
		return ""
	})
	if o.Status.Error != nil || o.Spec.MoveBeforeUse == nil || !*o.Spec.MoveBeforeUse {
		t.Errorf("%+v, %+v", o.Spec, o.Status)
	}
	eventually(t, "it can be staged", func() bool { return stage() == nil })
}

func adopt(t *testing.T, a *API, id, node string) {
	t.Helper()
	a.Kubectl(t, "", "patch", "volumes.drivebay.io", id, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"adopt":%q}}`, node))
}

// TestKubeAdopt: a volume whose drives are on another node, or whose node has lost its records, is shown, and adopted by
// the node that a person names. The class and the name come from the object.
func TestKubeAdopt(t *testing.T) {
	a := Up(t)
	n, other := newNode(t, a, "node-1", 2), newNode(t, a, "node-2", 2)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1", "node-2")
	all := volumesOf(t, a)
	r := requestFor("pvc-1", gib)
	r.Nodes = []string{"node-1"}
	v, err := create(t, c, r)
	if err != nil {
		t.Fatal(err)
	}
	adopt(t, a, v.ID, "node-2")
	o := n.object(t, all, "pvc-1", "is not given up", func(o *v1alpha1.Volume) bool { return o.Status.Error != nil })
	if o.Status.Error.Code != "Refused" || o.Status.Phase != v1alpha1.VolumeMade || len(holders([]*node{n}, "pvc-1")) != 1 {
		t.Errorf("a volume that is there: %+v", o.Status)
	}
	a.Kubectl(t, "", "patch", "volumes.drivebay.io", v.ID, "--type=merge", "-p", `{"spec":{"adopt":null}}`)
	n.object(t, all, "pvc-1", "has no error", func(o *v1alpha1.Volume) bool { return o.Status.Error == nil })

	// The records and the claims are lost.
	stop := func() { n.stopKube(); n.stopEngine() }
	stop()
	n.store, n.unclaimed = store.Memory(), true
	n.startEngine(t)
	n.startKube(t, a)
	o = n.object(t, all, "pvc-1", "is found", isPhase(v1alpha1.VolumeFound))
	if o.Status.Capacity != gib || len(o.Status.Findings) == 0 {
		t.Errorf("%+v", o.Status)
	}
	if v, ok := c.Volumes().Get(v.ID); !ok || !v.Condition.Abnormal() {
		t.Errorf("the controller shows %+v", v)
	}
	adopt(t, a, v.ID, "node-1")
	o = n.object(t, all, "pvc-1", "is adopted", isPhase(v1alpha1.VolumeMade))
	if o.Status.Location.Partition != v.Location.Partition || n.calls.create != 0 {
		t.Errorf("%+v, %d volumes are made", o.Status.Location, n.calls.create)
	}

	// The machine with its drives is another node now.
	stop()
	n.name, n.store = "node-3", store.Memory()
	n.startEngine(t)
	n.startKube(t, a)
	eventually(t, "node-1 is down", func() bool {
		return c.Volumes().Seq > 0 && slices.Contains(nodesOf(c), "node-3") && abnormal(c.Volumes(), v.ID) == "NodeDown"
	})
	adopt(t, a, v.ID, "node-3")
	o = n.object(t, all, "pvc-1", "is adopted by node-3", func(o *v1alpha1.Volume) bool { return o.Spec.Node == "node-3" && isPhase(v1alpha1.VolumeMade)(o) })
	if o.Status.Location.Partition != v.Location.Partition || o.Spec.Name != "pvc-1" || o.Spec.Class == nil || n.calls.create != 0 {
		t.Errorf("%+v", o)
	}
	if is, ok := c.Volumes().Get(v.ID); !ok || is.Node != "node-3" || is.Name != "pvc-1" {
		t.Errorf("the controller shows %+v", is)
	}

	// The drive of a volume is taken out of a node that works: the node gives up its record.
	pull(t, n, o.Status.Location.Drives[0])
	adopt(t, a, v.ID, "node-2")
	other.object(t, all, "pvc-1", "is expected on node-2", func(o *v1alpha1.Volume) bool { return o.Spec.Node == "node-2" && isPhase(v1alpha1.VolumeMissing)(o) })
	if got := holders([]*node{n, other}, "pvc-1"); len(got) != 0 || other.calls.create != 0 {
		t.Errorf("pvc-1 is on %v", got)
	}
}

func abnormal(set *drivebay.VolumeSet, id string) string {
	if v, ok := set.Get(id); ok && v.Condition.Abnormal() {
		return v.Condition[0].Reason
	}
	return ""
}
