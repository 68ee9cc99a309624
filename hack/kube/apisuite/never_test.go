//go:build kube

package apisuite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/internal/kube/controller"
)

// holders returns the nodes that have a volume.
func holders(nodes []*node, name string) (out []string) {
	for _, n := range nodes {
		if _, ok := n.engine.Volumes().Get(drivebay.VolumeID(name)); ok {
			out = append(out, n.name)
		}
	}
	return out
}

// persist repeats a call like a sidecar: until it succeeds, or fails for good.
func persist(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := call(ctx)
		cancel()
		transient := errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPending) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errKilled)
		if !transient || time.Since(began) > 2*time.Minute {
			return err
		}
	}
}

func create(t *testing.T, c *controller.Controller, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	t.Helper()
	var v drivebay.Volume
	err := persist(t, func(ctx context.Context) (err error) {
		v, err = c.CreateVolume(ctx, r)
		return err
	})
	return v, err
}

// TestKubeTwoLeaders: two controllers that both believe that they lead make each volume once, on a slow API that loses
// requests and answers.
func TestKubeTwoLeaders(t *testing.T) {
	a := Up(t)
	nodes := []*node{newNode(t, a, "node-1", 2), newNode(t, a, "node-2", 2), newNode(t, a, "node-3", 2)}
	one, _ := newController(t, flakyConfig(a.Config(), 1))
	two, _ := newController(t, flakyConfig(a.Config(), 2))
	both := []*controller.Controller{one, two}
	for _, c := range both {
		ready(t, c, "node-1", "node-2", "node-3")
	}
	const volumes = 12
	var all sync.WaitGroup
	where := make([][2]string, volumes)
	for i := range volumes {
		for j, c := range both {
			all.Go(func() {
				r := requestFor(fmt.Sprint("pvc-", i), gib)
				if i%3 == 0 { // the two disagree about the node
					r.Nodes = []string{nodes[j].name, nodes[1-j].name}
				}
				v, err := create(t, c, r)
				if err != nil {
					t.Errorf("%s: %v", r.Name, err)
				}
				where[i][j] = v.Node
			})
		}
	}
	all.Wait()
	for i, w := range where {
		name := fmt.Sprint("pvc-", i)
		if got := holders(nodes, name); len(got) != 1 || w[0] != got[0] || w[1] != got[0] {
			t.Errorf("%s is on %v, the controllers say %v", name, got, w)
		}
	}
	for i := range volumes {
		id := drivebay.VolumeID(fmt.Sprint("pvc-", i))
		for j, c := range both {
			all.Go(func() {
				var v drivebay.Volume
				if err := persist(t, func(ctx context.Context) (err error) {
					v, _, err = c.ExpandVolume(ctx, id, drivebay.SizeRange{Required: uint64(2+j) * gib})
					return err
				}); err != nil || v.Size < uint64(2+j)*gib {
					t.Errorf("pvc-%d: %d bytes, %v", i, v.Size, err)
				}
			})
		}
	}
	all.Wait()
	for i := range volumes {
		for _, c := range both {
			all.Go(func() {
				if err := persist(t, func(ctx context.Context) error { return c.DeleteVolume(ctx, drivebay.VolumeID(fmt.Sprint("pvc-", i))) }); err != nil {
					t.Errorf("pvc-%d: %v", i, err)
				}
			})
		}
	}
	all.Wait()
	for i := range volumes {
		if got := holders(nodes, fmt.Sprint("pvc-", i)); len(got) != 0 {
			t.Errorf("pvc-%d is still on %v", i, got)
		}
	}
}

// TestKubeNameCollision: of two requests with one name and different parameters one succeeds, and the other one fails.
func TestKubeNameCollision(t *testing.T) {
	a := Up(t)
	nodes := []*node{newNode(t, a, "node-1", 2), newNode(t, a, "node-2", 2)}
	one, _ := newController(t, a.Config())
	two, _ := newController(t, a.Config())
	ready(t, one, "node-1", "node-2")
	ready(t, two, "node-1", "node-2")
	for i := range 5 {
		name := fmt.Sprint("pvc-", i)
		ext, xfs := requestFor(name, gib), requestFor(name, gib)
		xfs.FSType = "xfs"
		ext.Nodes, xfs.Nodes = []string{"node-1"}, []string{"node-2"}
		var errs [2]error
		var all sync.WaitGroup
		all.Go(func() { _, errs[0] = create(t, one, ext) })
		all.Go(func() { _, errs[1] = create(t, two, xfs) })
		all.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), drivebay.ErrExists) {
			t.Errorf("%s: %v", name, errs)
		}
		if got := holders(nodes, name); len(got) != 1 {
			t.Errorf("%s is on %v", name, got)
		}
	}
}

// TestKubeControllerKilled: a controller dies at each of its writes, before and after the API server has them. The next one
// ends the call with one volume, of the size that was requested, or with none.
func TestKubeControllerKilled(t *testing.T) {
	a := Up(t)
	nodes := []*node{newNode(t, a, "node-1", 1), newNode(t, a, "node-2", 2)}
	next, _ := newController(t, a.Config())
	ready(t, next, "node-1", "node-2")
	deaths := 0
	for at := 1; at <= 3; at++ {
		for _, sent := range []bool{false, true} {
			name := fmt.Sprintf("pvc-%d-%v", at, sent)
			id := drivebay.VolumeID(name)
			// die runs a call in a controller that dies; then another one runs it.
			die := func(call func(context.Context, *controller.Controller) error) {
				t.Helper()
				config, died := killAt(a.Config(), at, sent)
				c, stop := newController(t, config)
				eventually(t, "the controller knows the nodes", func() bool { return len(nodesOf(c)) == len(nodes) && c.Listed() == nil })
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
			}
			r := requestFor(name, gib)
			r.Class.Backing = drivebay.BackingMirror
			r.Nodes = []string{"node-1", "node-2"} // the report of node-1 has no room for a mirror
			die(func(ctx context.Context, c *controller.Controller) error {
				_, err := c.CreateVolume(ctx, r)
				return err
			})
			if got := holders(nodes, name); len(got) != 1 {
				t.Errorf("%s is on %v", name, got)
			}
			die(func(ctx context.Context, c *controller.Controller) error {
				v, _, err := c.ExpandVolume(ctx, id, drivebay.SizeRange{Required: 2 * gib})
				if err == nil && v.Size != 2*gib {
					err = fmt.Errorf("it has %d bytes", v.Size)
				}
				return err
			})
			die(func(ctx context.Context, c *controller.Controller) error { return c.DeleteVolume(ctx, id) })
			if got := holders(nodes, name); len(got) != 0 {
				t.Errorf("%s is still on %v", name, got)
			}
		}
	}
	if deaths < 6 {
		t.Errorf("only %d controllers died", deaths)
	}
}

// TestKubeNodeKilled: the daemon of a node dies at each of its writes to an object, before and after the API server has
// them, and starts again. The call ends with one volume, or with none.
func TestKubeNodeKilled(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 2)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1")
	deaths := 0
	for at := 1; at <= 2; at++ {
		for _, sent := range []bool{false, true} {
			name := fmt.Sprintf("pvc-%d-%v", at, sent)
			id := drivebay.VolumeID(name)
			die := func(call func(context.Context) error) {
				t.Helper()
				n.stopKube()
				n.stopEngine()
				n.startEngine(t)
				config, died := killAt(a.Config(), at, sent)
				n.startKubeAs(t, config)
				ended := make(chan error, 1)
				go func() { ended <- persist(t, call) }()
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
			}
			die(func(ctx context.Context) error {
				_, err := c.CreateVolume(ctx, requestFor(name, gib))
				return err
			})
			if got := holders([]*node{n}, name); len(got) != 1 {
				t.Errorf("%s was not made", name)
			}
			die(func(ctx context.Context) error {
				_, _, err := c.ExpandVolume(ctx, id, drivebay.SizeRange{Required: 2 * gib})
				return err
			})
			die(func(ctx context.Context) error { return c.DeleteVolume(ctx, id) })
			if got := holders([]*node{n}, name); len(got) != 0 {
				t.Errorf("%s is still there", name)
			}
		}
	}
	if deaths < 6 {
		t.Errorf("the daemon died only %d times", deaths)
	}
}

// TestKubeNodeDown: the volumes of a node that is silent are abnormal until it returns, and it gets no new ones.
func TestKubeNodeDown(t *testing.T) {
	a := Up(t)
	nodes := []*node{newNode(t, a, "node-1", 2), newNode(t, a, "node-2", 2)}
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1", "node-2")
	on1 := requestFor("pvc-1", gib)
	on1.Nodes = []string{"node-1"}
	if _, err := create(t, c, on1); err != nil {
		t.Fatal(err)
	}
	nodes[0].stopKube()
	reason := func() string {
		if v, ok := c.Volumes().Get(drivebay.VolumeID("pvc-1")); ok && v.Condition.Abnormal() {
			return v.Condition[0].Reason
		}
		return ""
	}
	eventually(t, "pvc-1 is abnormal", func() bool { return reason() == "NodeDown" })
	more := requestFor("pvc-2", gib)
	more.Nodes = []string{"node-1"}
	if _, err := c.CreateVolume(t.Context(), more); !errors.Is(err, drivebay.ErrUnavailable) {
		t.Errorf("a volume on a node that is down: %v", err)
	}
	if err := c.DeleteVolume(t.Context(), drivebay.VolumeID("pvc-1")); !errors.Is(err, drivebay.ErrUnavailable) {
		t.Errorf("a deletion on a node that is down: %v", err)
	}
	if v, err := create(t, c, requestFor("pvc-3", gib)); err != nil || v.Node != "node-2" {
		t.Errorf("a volume anywhere: on %q, %v", v.Node, err)
	}
	nodes[0].startKube(t, a)
	eventually(t, "pvc-1 is well", func() bool { return reason() == "" })
	if err := persist(t, func(ctx context.Context) error { return c.DeleteVolume(ctx, drivebay.VolumeID("pvc-1")) }); err != nil {
		t.Error(err)
	}
}

// TestKubeDeleteInUse checks that a deletion that was refused does not happen later.
func TestKubeDeleteInUse(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 2)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1")
	v, err := create(t, c, requestFor("pvc-1", gib))
	if err != nil {
		t.Fatal(err)
	}
	staging := kubelet + "/plugins/pvc-1"
	if err := (csitest.Simulated{Machine: n.sim, Root: kubelet}).MakeFolder(staging); err != nil {
		t.Fatal(err)
	}
	if err := n.engine.StageVolume(t.Context(), drivebay.StageRequest{Volume: v.ID, Path: staging, Access: drivebay.AccessWriter}); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteVolume(t.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
		t.Fatalf("the deletion of a volume in use: %v", err)
	}
	if err := n.engine.UnstageVolume(t.Context(), v.ID, staging); err != nil {
		t.Fatal(err)
	}
	all := volumesOf(t, a)
	n.object(t, all, "pvc-1", "is not to be deleted", func(o *v1alpha1.Volume) bool { return o.Spec.Release == "" && isPhase(v1alpha1.VolumeMade)(o) })
	time.Sleep(2 * time.Second)
	if got := holders([]*node{n}, "pvc-1"); len(got) != 1 {
		t.Error("it was deleted later")
	}
	if err := c.DeleteVolume(t.Context(), v.ID); err != nil {
		t.Error(err)
	}
}

// TestKubeVolumesAPIAway: a node works without the API server, and shows afterwards what has happened.
func TestKubeVolumesAPIAway(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 2)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1")
	if _, err := create(t, c, requestFor("pvc-1", gib)); err != nil {
		t.Fatal(err)
	}
	a.Stop()
	if _, err := n.engine.CreateVolume(t.Context(), requestFor("away", gib)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := c.CreateVolume(ctx, requestFor("pvc-2", gib)); err == nil {
		t.Error("a volume is made without the API server")
	}
	if _, ok := c.Volumes().Get(drivebay.VolumeID("pvc-1")); !ok {
		t.Error("the controller forgot a volume")
	}
	a.Start(t)
	n.object(t, volumesOf(t, a), "away", "is shown", isPhase(v1alpha1.VolumeMade))
	if _, err := create(t, c, requestFor("pvc-2", gib)); err != nil {
		t.Error(err)
	}
	if got := holders([]*node{n}, "pvc-2"); len(got) != 1 {
		t.Errorf("pvc-2 is on %v", got)
	}
}
