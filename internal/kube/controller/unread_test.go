package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/internal/kube/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// leading returns a controller that leads a cluster without volumes, and a function that calls its CSI endpoint.
func leading(t *testing.T) (*Controller, func(name, request string) (string, codes.Code)) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // it has no objects
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}))
	t.Cleanup(api.Close)
	config, err := client.New(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Log: slog.New(slog.DiscardHandler), Objects: client.NewVolumes(config)})
	_ = c.objects.Replace(nil, "")
	_ = c.objects.snapshots.Replace(nil, "")
	c.Lead()
	path := filepath.Join(t.TempDir(), "csi.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	s := csi.New(nil, csi.Options{Version: "1", Cluster: c})
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, func(name, request string) (string, codes.Code) {
		text, err := csi.Call(t.Context(), path, name, request)
		return fmt.Sprint(text, err), status.Code(err)
	}
}

// TestRoomIsNotKnown: a controller does not say that there is no room before it has listed the nodes, and not while a node has
// not read its drives.
func TestRoomIsNotKnown(t *testing.T) {
	c, call := leading(t)
	expect := func(when string, create, capacity codes.Code) {
		t.Helper()
		if text, code := call("CreateVolume", `{"name":"a","capacityRange":{"requiredBytes":1073741824},"volumeCapabilities":[{"mount":{},"accessMode":{"mode":"SINGLE_NODE_WRITER"}}],
			"accessibilityRequirements":{"requisite":[{"segments":{"topology.drivebay.io/node":"n"}}],"preferred":[{"segments":{"topology.drivebay.io/node":"n"}}]}}`); code != create {
			t.Errorf("%s: create: %v, want %v: %s", when, code, create, text)
		}
		for _, request := range []string{`{}`, `{"accessibleTopology":{"segments":{"topology.drivebay.io/node":"n"}}}`} {
			if text, code := call("GetCapacity", request); code != capacity {
				t.Errorf("%s: capacity: %v, want %v: %s", when, code, capacity, text)
			}
		}
	}
	expect("the nodes are not listed", codes.Unavailable, codes.Unavailable)
	n := lease("n", time.Now())
	_ = c.nodes.Replace([]any{n}, "")
	expect("the drives of the node are not read", codes.Unavailable, codes.Unavailable)
	n.Annotations["drivebay.io/report"] = `{"mirrored":true,"whole":true}`
	_ = c.nodes.Update(n)
	expect("the node is full", codes.ResourceExhausted, codes.OK)
}

// TestObjectDeletedNodeDown: a volume whose object was deleted while its node is down may exist. It is neither not found, nor
// missing in a list, until the node reports again or its Lease is deleted. Lists of other volumes do not wait for a node.
func TestObjectDeletedNodeDown(t *testing.T) {
	c, call := leading(t)
	_ = c.objects.Replace([]any{numbered(1, 5, "n"), numbered(2, 5, "m")}, "5")
	now := time.Now()
	down := lease("n", now.Add(-time.Hour))
	_ = c.nodes.Replace([]any{down, lease("m", now)}, "")
	_ = c.nodes.Update(lease("m", now.Add(time.Second))) // it is seen to report
	c.objects.nodesChanged(c.nodes.look())
	id := drivebay.VolumeID("1")
	expect := func(when string, get, list codes.Code) {
		t.Helper()
		for _, name := range []string{"ControllerGetVolume", "ControllerGetVolumeHealth"} {
			if text, code := call(name, `{"volumeId":"`+id+`"}`); code != get {
				t.Errorf("%s: %s: %v, want %v: %s", when, name, code, get, text)
			}
		}
		if text, code := call("ListVolumes", `{}`); code != list {
			t.Errorf("%s: list: %v, want %v: %s", when, code, list, text)
		}
	}
	expect("it is there", codes.OK, codes.OK)
	_ = c.objects.Delete(numbered(1, 6, "n"))
	expect("its object is deleted", codes.Unavailable, codes.Unavailable)
	id = drivebay.VolumeID("another")
	expect("an id that no object had", codes.Unavailable, codes.Unavailable)
	id = drivebay.VolumeID("1")
	c.nodes.now = func() time.Time { return time.Now().Add(showTime) }
	c.objects.lost[id] = lost{"n", now.Add(-2 * keepLost)}
	_ = c.objects.Delete(numbered(2, 6, "m")) // what was lost long ago is forgotten
	_ = c.nodes.Update(lease("m", now.Add(showTime)))
	expect("much later", codes.Unavailable, codes.Unavailable)
	starting := lease("n", now)
	starting.Annotations["drivebay.io/report"] = `{"mirrored":true,"starting":true}`
	_ = c.nodes.Update(starting)
	expect("the node reports before it has read its drives", codes.Unavailable, codes.Unavailable)
	_ = c.nodes.Update(lease("n", now.Add(time.Second)))
	expect("the node reports without it", codes.NotFound, codes.OK)
	_ = c.objects.Update(numbered(3, 7, "n"))
	c.nodes.now = func() time.Time { return time.Now().Add(keepLost) }
	_ = c.nodes.Update(lease("m", now.Add(keepLost)))
	expect("the node is down again", codes.Unavailable, codes.OK)
	_ = c.objects.Delete(numbered(3, 8, "n"))
	_ = c.nodes.Delete(down)
	expect("the node is gone for good", codes.NotFound, codes.OK)
}

// TestDeleteAtStart: no deletion of a volume without an object is acknowledged before every node has read its drives since it started:
// a machine that was installed again under the name of another one has the Lease of that one.
func TestDeleteAtStart(t *testing.T) {
	c, call := leading(t)
	now := time.Now()
	n := lease("n", now)
	_ = c.nodes.Replace([]any{n}, "")
	for i, report := range []string{`{"mirrored":true,"starting":true}`, `{"mirrored":true}`} {
		n.Annotations["drivebay.io/report"] = report
		n.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(time.Duration(i+1) * time.Second)}
		_ = c.nodes.Update(n)
		c.nodes.look()
		want := []codes.Code{codes.Unavailable, codes.OK}[i]
		if text, code := call("DeleteVolume", `{"volumeId":"`+drivebay.VolumeID("1")+`"}`); code != want {
			t.Errorf("%s: %v, want %v: %s", report, code, want, text)
		}
	}
}

// TestMissingSnapshotIsNotReady: a snapshot that its node does not find is not ready to use, also if an older daemon has written its
// status.
func TestMissingSnapshotIsNotReady(t *testing.T) {
	c, call := leading(t)
	_ = c.nodes.Replace([]any{lease("n", time.Now())}, "")
	_ = c.nodes.Update(lease("n", time.Now().Add(time.Second)))
	id := drivebay.SnapshotID("s")
	for i, p := range []v1alpha1.VolumePhase{v1alpha1.VolumeMade, v1alpha1.VolumeMissing} {
		_ = c.objects.snapshots.Update(&v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: id, UID: "u", ResourceVersion: strconv.Itoa(5 + i)},
			Spec: v1alpha1.SnapshotSpec{Node: "n", Name: "s", Volume: drivebay.VolumeID("v")}, Status: v1alpha1.SnapshotStatus{Phase: p, Capacity: gib}})
		text, code := call("ListSnapshots", `{"snapshotId":"`+id+`"}`)
		ready := strings.Contains(strings.ReplaceAll(text, " ", ""), `"readyToUse":true`)
		if code != codes.OK || ready != (p == v1alpha1.VolumeMade) {
			t.Errorf("%s: ready %v: %v %s", p, ready, code, text)
		}
	}
}

// TestNodeOfAFutureClock: at the start of the controller, a renewal of a time to come says nothing: the clock of
// the node is ahead, and the node may have been down since. Its next renewal shows that it reports.
func TestNodeOfAFutureClock(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := newNodes(slog.New(slog.DiscardHandler))
	n.now = func() time.Time { return now }
	ahead := now.Add(24 * time.Hour)
	_ = n.Replace([]any{lease("a", ahead), lease("near", now.Add(30*time.Second))}, "")
	n.look()
	if n.down("a") == "" || n.down("near") != "" {
		t.Errorf("at the start: %q, %q", n.down("a"), n.down("near"))
	}
	_ = n.Update(lease("a", ahead.Add(10*time.Second)))
	if n.look(); n.down("a") != "" {
		t.Errorf("renewed: %s", n.down("a"))
	}
	now = now.Add(time.Minute)
	if n.look(); n.down("a") == "" {
		t.Error("a minute without a renewal, and the node is not down")
	}
}
