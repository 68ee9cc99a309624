//go:build kube

package apisuite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/controller"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func thinRequest(name string, source drivebay.Source, nodes ...string) drivebay.VolumeRequest {
	r := requestFor(name, gib)
	r.Class.Backing, r.Source, r.Nodes = drivebay.BackingThin, source, nodes
	return r
}

// snapshotObject waits until the object of a snapshot has a phase.
func snapshotObject(t *testing.T, a *API, name string, phase v1alpha1.VolumePhase) *v1alpha1.Snapshot {
	t.Helper()
	var o *v1alpha1.Snapshot
	eventually(t, fmt.Sprintf("snapshot %s is %s", name, phase), func() bool {
		var err error
		o, err = snapshotsAs(t, a.Config()).Get(t.Context(), drivebay.SnapshotID(name))
		return err == nil && o.Status.Phase == phase && o.Status.ObservedGeneration == o.Generation
	})
	return o
}

// TestKubeSnapshots: snapshots and clones are made on the node of their source, and nowhere else.
func TestKubeSnapshots(t *testing.T) {
	a := Up(t)
	one, two := newNode(t, a, "node-1", 2), newNode(t, a, "node-2", 4)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1", "node-2")
	capture := func(name, volume string) (s drivebay.VolumeSnapshot, err error) {
		err = persist(t, func(ctx context.Context) error {
			s, err = c.CreateSnapshot(ctx, name, volume)
			return err
		})
		return s, err
	}
	fails := func(what string, want, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	v, err := create(t, c, thinRequest("pvc-1", drivebay.Source{}, "node-1"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := create(t, c, requestFor("plain", gib))
	if err != nil {
		t.Fatal(err)
	}
	s, err := capture("snap-1", v.ID)
	if err != nil || s.Node != "node-1" || s.Size != gib || s.Source != v.ID || s.Created.IsZero() {
		t.Fatalf("%+v, %v", s, err)
	}
	again, err := capture("snap-1", v.ID)
	if err != nil || again.ID != s.ID || !again.Created.Equal(s.Created) {
		t.Errorf("requested again: %+v, %v", again, err)
	}
	_, err = capture("snap-1", plain.ID)
	fails("a snapshot of another volume with that name", drivebay.ErrExists, err)
	_, err = capture("snap-2", plain.ID)
	fails("a snapshot of a partition", drivebay.ErrNoSupport, err)
	_, err = capture("snap-2", drivebay.VolumeID("none"))
	fails("a snapshot of no volume", drivebay.ErrNotFound, err)
	if _, err := snapshotsAs(t, a.Config()).Get(t.Context(), drivebay.SnapshotID("snap-2")); !apierrors.IsNotFound(err) {
		t.Errorf("the object of a snapshot that was refused: %v", err)
	}

	for name, source := range map[string]drivebay.Source{"of-snapshot": {Snapshot: s.ID}, "of-volume": {Volume: v.ID}} {
		if v, err := create(t, c, thinRequest(name, source)); err != nil || v.Node != "node-1" || v.Source != source {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		_, err := create(t, c, thinRequest(name+"-elsewhere", source, "node-2"))
		fails(name+" on another node", drivebay.ErrNoSpace, err)
		if _, err := volumesOf(t, a).Get(t.Context(), drivebay.VolumeID(name+"-elsewhere")); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the object of what was refused: %v", name, err)
		}
	}
	_, err = create(t, c, thinRequest("of-nothing", drivebay.Source{Snapshot: drivebay.SnapshotID("none")}))
	fails("a volume of no snapshot", drivebay.ErrNotFound, err)
	if got := holders([]*node{two}, "of-snapshot"); len(got) != 0 {
		t.Errorf("of-snapshot is on %v", got)
	}

	// An object is a mirror: its deletion deletes nothing. What is made on the node is shown.
	o := snapshotObject(t, a, "snap-1", v1alpha1.VolumeMade)
	a.Kubectl(t, "", "delete", "snapshots.drivebay.io", o.Name)
	eventually(t, "the snapshot is shown again", func() bool {
		again, err := snapshotsAs(t, a.Config()).Get(t.Context(), o.Name)
		return err == nil && again.UID != o.UID && again.Status.Phase == v1alpha1.VolumeMade && again.Spec.Attempt == 0
	})
	if _, err := one.engine.CreateSnapshot(t.Context(), "by-hand", v.ID); err != nil {
		t.Fatal(err)
	}
	snapshotObject(t, a, "by-hand", v1alpha1.VolumeMade)
	t.Log(a.Kubectl(t, "", "get", "snapshots.drivebay.io", "--output", "wide"))
	eventually(t, "the controller has both", func() bool { return len(c.Volumes().Snapshots) == 2 })

	// A restart writes nothing.
	one.restart(t, a)
	time.Sleep(2 * time.Second)
	began := time.Now()
	time.Sleep(3 * time.Second)
	if w := a.Writes(t, "snapshots", "", began); len(w) != 0 {
		t.Errorf("the steady state writes: %+v", w)
	}

	one.stopKube()
	eventually(t, "node-1 is down", func() bool {
		_, err := c.CreateVolume(t.Context(), thinRequest("late", drivebay.Source{Snapshot: s.ID}))
		return errors.Is(err, drivebay.ErrUnavailable)
	})
	fails("a deletion on a node that is down", drivebay.ErrUnavailable, c.DeleteSnapshot(t.Context(), s.ID))
	one.startKube(t, a)
	for _, name := range []string{"snap-1", "by-hand", "snap-1"} {
		if err := persist(t, func(ctx context.Context) error { return c.DeleteSnapshot(ctx, drivebay.SnapshotID(name)) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(one.engine.Volumes().Snapshots); n != 0 {
		t.Errorf("%d snapshots are left", n)
	}
}

// TestKubeSnapshotsKilled: a controller, and then a node, dies at each of its writes, before and after the API server has
// them. The call ends with one snapshot, or with none.
func TestKubeSnapshotsKilled(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 2)
	next, _ := newController(t, a.Config())
	ready(t, next, "node-1")
	v, err := create(t, next, thinRequest("pvc-1", drivebay.Source{}))
	if err != nil {
		t.Fatal(err)
	}
	deaths := 0
	for at := 1; at <= 2; at++ {
		for _, sent := range []bool{false, true} {
			name := fmt.Sprintf("snap-%d-%v", at, sent)
			there := func(want bool) {
				t.Helper()
				if _, is := n.engine.Volumes().GetSnapshot(drivebay.SnapshotID(name)); is != want {
					t.Errorf("%s: on the node: %v", name, is)
				}
			}
			calls := []func(context.Context, *controller.Controller) error{
				func(ctx context.Context, c *controller.Controller) error {
					_, err := c.CreateSnapshot(ctx, name, v.ID)
					return err
				},
				func(ctx context.Context, c *controller.Controller) error {
					return c.DeleteSnapshot(ctx, drivebay.SnapshotID(name))
				},
			}
			for i, call := range calls { // the controller dies
				config, died := killAt(a.Config(), at, sent)
				c, stop := newController(t, config)
				eventually(t, "the controller knows the node", func() bool { return len(nodesOf(c)) == 1 && c.Listed() == nil })
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				_ = call(ctx, c)
				cancel()
				stop()
				if died() {
					deaths++
				}
				if err := persist(t, func(ctx context.Context) error { return call(ctx, next) }); err != nil {
					t.Errorf("%s: the next controller: %v", name, err)
				}
				there(i == 0)
			}
			for i, call := range calls { // the node dies
				n.stopKube()
				config, died := killAt(a.Config(), at, sent)
				n.startKubeAs(t, config)
				ended := make(chan error, 1)
				go func() { ended <- persist(t, func(ctx context.Context) error { return call(ctx, next) }) }()
				for began := time.Now(); !died() && time.Since(began) < 3*time.Second; {
					time.Sleep(10 * time.Millisecond)
				}
				if died() {
					deaths++
				}
				n.restart(t, a)
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", name, err)
				}
				there(i == 0)
			}
		}
	}
	if deaths < 8 {
		t.Errorf("only %d died", deaths)
	}
}

// TestKubeObjectDeleted: a person deletes the object of a volume in the middle of a call. No volume is made twice, none
// is left behind, and DeleteVolume does not succeed before the node has deleted the volume.
func TestKubeObjectDeleted(t *testing.T) {
	a := Up(t)
	one, two := newNode(t, a, "node-1", 2), newNode(t, a, "node-2", 4)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1", "node-2")
	all, id := volumesOf(t, a), drivebay.VolumeID("pvc-1")
	// delete deletes the object once it requests something of the node, and waits until another object does.
	deleteObject := func(what string, requests func(*v1alpha1.Volume) bool) {
		t.Helper()
		o := one.object(t, all, "pvc-1", what, requests)
		if err := all.Delete(t.Context(), o.Name, o.UID); err != nil {
			t.Fatal(err)
		}
		again := one.object(t, all, "pvc-1", what+" again", func(n *v1alpha1.Volume) bool { return n.UID != o.UID && requests(n) })
		if again.Spec.Node != "node-1" {
			t.Errorf("node %s is asked", again.Spec.Node)
		}
	}
	ended := make(chan error, 1)
	r := requestFor("pvc-1", gib)
	r.Nodes = []string{"node-1", "node-2"}
	one.stopKube() // it has its Lease for four seconds
	go func() {
		ended <- persist(t, func(ctx context.Context) error { _, err := c.CreateVolume(ctx, r); return err })
	}()
	deleteObject("is requested", func(o *v1alpha1.Volume) bool { return o.Spec.Attempt > 0 })
	one.startKube(t, a)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := holders([]*node{one, two}, "pvc-1"); len(got) != 1 || got[0] != "node-1" {
		t.Errorf("pvc-1 is on %v", got)
	}

	one.stopKube()
	go func() {
		ended <- persist(t, func(ctx context.Context) error { return c.DeleteVolume(ctx, id) })
	}()
	deleteObject("is released", func(o *v1alpha1.Volume) bool { return o.Spec.Release != "" })
	one.startKube(t, a)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := holders([]*node{one, two}, "pvc-1"); len(got) != 0 {
		t.Errorf("pvc-1 is still on %v", got)
	}

	// The daemon of an earlier version deletes the object and says nothing.
	if _, err := create(t, c, r); err != nil {
		t.Fatal(err)
	}
	one.stopKube()
	go func() { ended <- c.DeleteVolume(t.Context(), id) }()
	for range 2 {
		o := one.object(t, all, "pvc-1", "is released", func(o *v1alpha1.Volume) bool { return o.Spec.Release != "" })
		if err := all.Delete(t.Context(), o.Name, o.UID); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; !errors.Is(err, drivebay.ErrUnavailable) {
		t.Errorf("the deletion without an answer: %v", err)
	}
	one.startKube(t, a)
	one.object(t, all, "pvc-1", "is shown again", isPhase(v1alpha1.VolumeMade))
	if err := persist(t, func(ctx context.Context) error { return c.DeleteVolume(ctx, id) }); err != nil {
		t.Error(err)
	}

	// A node that is down cannot show its volume again.
	if _, err := create(t, c, r); err != nil {
		t.Fatal(err)
	}
	one.stopKube()
	o := one.object(t, all, "pvc-1", "is made", isPhase(v1alpha1.VolumeMade))
	if err := all.Delete(t.Context(), o.Name, o.UID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controller has noticed", func() bool { _, known := c.Volumes().Get(id); return !known })
	for range 20 { // before the node counts as down, and then
		if err := c.DeleteVolume(t.Context(), id); !errors.Is(err, drivebay.ErrUnavailable) {
			t.Fatalf("the deletion of a volume of a node that does not report: %v", err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	one.startKube(t, a)
	one.object(t, all, "pvc-1", "is shown again", isPhase(v1alpha1.VolumeMade))
	if err := persist(t, func(ctx context.Context) error { return c.DeleteVolume(ctx, id) }); err != nil {
		t.Error(err)
	}
	if got := holders([]*node{one, two}, "pvc-1"); len(got) != 0 {
		t.Errorf("pvc-1 is still on %v", got)
	}
}
