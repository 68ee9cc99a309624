//go:build kube

package apisuite

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
)

// The cluster of the test, and the budgets of its controller.
const (
	scaleVolumes = 80_000
	scaleDrives  = 20_000
	scaleNodes   = 200

	maxController = 600 // MiB
	maxCold       = 30 * time.Second
	maxPage       = 10 * time.Millisecond
	maxWalk       = 1500 * time.Millisecond
	maxGet        = 2 * time.Millisecond
	pageSize      = 100 // what external-health-monitor and csi-sanity ask for is less
)

// fill writes objects into etcd as the API server stores them: through the API server it would take half an hour. It is
// done before the API server starts to serve them.
func (a *API) fill(t *testing.T, resource string, objects func(i int) (name string, object any), n int) {
	t.Helper()
	const batch = 100 // etcd's limit of operations in a transaction is 128
	for from := 0; from < n; from += batch {
		var ops []any
		for i := from; i < min(from+batch, n); i++ {
			name, object := objects(i)
			body, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, map[string]any{"requestPut": map[string]string{
				"key": base64.StdEncoding.EncodeToString([]byte("/registry/drivebay.io/" + resource + "/" + name)), "value": base64.StdEncoding.EncodeToString(body)}})
		}
		body, err := json.Marshal(map[string]any{"success": ops})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.Post(a.etcd+"/v3/kv/txn", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Fatalf("etcd: %s: %s", r.Status, text)
		}
	}
}

func scaleNode(i int) string { return fmt.Sprintf("node-%d", i%scaleNodes) }

func scaleName(i int) string { return fmt.Sprintf("pvc-%08x-0000-4000-8000-%012x", i, i) }

// owners are the owners of the fields of an object, which are half of its size.
func owners(fields string) []metav1.ManagedFieldsEntry {
	now := metav1.Now()
	return []metav1.ManagedFieldsEntry{{Manager: client.NodeOwner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "drivebay.io/v1alpha1", Time: &now, Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}}
}

func scaleMeta(name, node string, i int, fields string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("%08x-0000-4000-9000-%012x", i, i)), Generation: 1, CreationTimestamp: metav1.Now(), Labels: client.Labels(node), ManagedFields: owners(fields)}
}

func scaleVolume(i int) (string, any) {
	name, node := scaleName(i), scaleNode(i)
	id := drivebay.VolumeID(name)
	o := v1alpha1.Volume{TypeMeta: metav1.TypeMeta{APIVersion: "drivebay.io/v1alpha1", Kind: "Volume"},
		ObjectMeta: scaleMeta(id, node, i, `{"f:status":{"f:blockDevice":{},"f:capacity":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:created":{},"f:csiStatus":{},"f:health":{},"f:location":{"f:drives":{},"f:kind":{},"f:partition":{}},"f:observedGeneration":{},"f:operationalStatus":{},"f:phase":{},"f:publications":{},"f:size":{},"f:usage":{}}}`),
		Spec: v1alpha1.VolumeSpec{Node: node, Name: name, Mode: v1alpha1.ModeFilesystem, Attempt: 1, Size: v1alpha1.VolumeSize{Required: gib},
			Class: &v1alpha1.VolumeClass{Drives: "any", Backing: "partition", Wipe: "discard", FSType: "ext4"}},
		Status: v1alpha1.VolumeStatus{ObservedGeneration: 1, Phase: v1alpha1.VolumeMade, Size: "1Gi", Capacity: gib, Created: metav1.Now(), Health: "GOOD", OperationalStatus: "OPERATIVE", CSIStatus: "PUBLISHED", Usage: "IN_USE",
			Location: v1alpha1.VolumeLocation{Kind: "PARTITION", Drives: []string{fmt.Sprintf("naa-%016x", i/4)}, Partition: fmt.Sprintf("%08x-0000-4000-a000-%012x", i, i)},
			Publications: []v1alpha1.VolumePublication{{Path: fmt.Sprintf("/var/lib/kubelet/plugins/kubernetes.io/csi/drivebay.io/%064x/globalmount", i), Staging: true},
				{Path: fmt.Sprintf("/var/lib/kubelet/pods/%08x-0000-4000-b000-%012x/volumes/kubernetes.io~csi/%s/mount", i, i, name)}},
			Conditions: []metav1.Condition{{Type: v1alpha1.VolumeReady, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 1, LastTransitionTime: metav1.Now()}},
		}}
	return id, o
}

func scaleDrive(i int) (string, any) {
	node := scaleNode(i)
	id := fmt.Sprintf("naa-%016x", i)
	o := v1alpha1.Drive{TypeMeta: metav1.TypeMeta{APIVersion: "drivebay.io/v1alpha1", Kind: "Drive"},
		ObjectMeta: scaleMeta(id+"."+node, node, i, `{"f:status":{"f:bay":{},"f:capacity":{},"f:conditions":{},"f:health":{},"f:id":{},"f:identity":{},"f:node":{},"f:state":{},"f:usage":{}}}`),
		Status: v1alpha1.DriveStatus{ObservedGeneration: 1, Node: node, ID: id, Device: "sda", Type: "HDD", Size: "16 TB", State: "ONLINE", Health: "GOOD", Usage: "IN_USE", ClaimedBy: "operator", Content: "ours",
			Identity: v1alpha1.DriveIdentity{Vendor: "SEAGATE", Model: "ST16000NM001G-2KK103", Serial: fmt.Sprintf("ZL2A%06d", i), WWN: "naa." + id[4:]}, Bay: v1alpha1.DriveBay{Name: fmt.Sprintf("Slot %02d", i/scaleNodes)},
			Capacity: v1alpha1.DriveCapacity{Total: 16e12, Free: "15 TB", Backings: []v1alpha1.BackingCapacity{{Backing: "partition", Largest: 15e12, Available: 15e12}}}}}
	return o.Name, o
}

// beat renews the Leases of all nodes as their daemons do.
func (a *API) beat(t *testing.T) {
	t.Helper()
	c := leasesOf(t, a.Config())
	seconds, known := int32(40), map[string]*coordinationv1.Lease{}
	renew := func(ctx context.Context) {
		for i := range scaleNodes {
			node, now := scaleNode(i), metav1.NewMicroTime(time.Now())
			l := known[node]
			if l == nil {
				l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "drivebay-node-" + node, Labels: map[string]string{"app.kubernetes.io/component": "drivebay-node"}, Annotations: map[string]string{"drivebay.io/report": `{"mirrored":true}`}}}
			}
			l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now}
			if out, err := c.Write(ctx, l, client.NodeOwner); err == nil {
				known[node] = out
			} else if ctx.Err() == nil {
				t.Log(err)
			}
		}
	}
	renew(t.Context())
	run(t, func(ctx context.Context) error {
		for ctx.Err() == nil {
			renew(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
		}
		return nil
	})
}

// times returns the time of the fastest of some calls, of the middle one, and of the slowest.
func times(t *testing.T, n int, call func(i int) error) (best, middle, worst time.Duration) {
	t.Helper()
	var all []time.Duration
	for i := range n {
		began := time.Now()
		if err := call(i); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[0], all[n/2], all[n-1]
}

// processor returns the processor time that a program has used.
func (p *program) processor(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] { // utime and stime, in hundredths of a second (proc(5))
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// TestScaleController: a controller of 100,000 objects is ready soon, needs little memory, and answers as fast as one of few.
func TestScaleController(t *testing.T) {
	a := Up(t)
	a.Stop()
	began := time.Now()
	a.fill(t, "volumes", scaleVolume, scaleVolumes)
	a.fill(t, "drives", scaleDrive, scaleDrives)
	t.Logf("%d objects are in etcd after %v", scaleVolumes+scaleDrives, time.Since(began).Round(time.Second))
	a.Start(t)
	a.buildDaemon(t)
	a.beat(t)
	began = time.Now()
	Eventually(t, 5*time.Minute, "the API server serves the objects from its cache", func() string {
		out, err := a.kubectl(t.Context(), "", "get", "--raw", "/apis/drivebay.io/v1alpha1/volumes?resourceVersion=0&resourceVersionMatch=NotOlderThan&labelSelector=drivebay.io/node%3Dnode-0")
		if err != nil {
			return err.Error()
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != scaleVolumes/scaleNodes {
			return fmt.Sprint(err, out[:min(len(out), 300)])
		}
		return ""
	})
	t.Logf("the API server has the objects in its cache after %v", time.Since(began).Round(time.Second))

	began = time.Now()
	p := a.controllerProcess(t)
	Eventually(t, 3*time.Minute, "the controller is ready", func() string { return p.ready(t) })
	cold := time.Since(began)
	check := func(what string, is, most time.Duration) {
		t.Helper()
		t.Logf("%s: %v, at most %v", what, is.Round(10*time.Microsecond), most)
		if is > most {
			t.Errorf("%s: %v, at most %v", what, is, most)
		}
	}
	check(fmt.Sprintf("cold start, election included (%v of processor time)", p.program.processor(t)), cold, maxCold)

	list := func(token string, n int32) (*csi.ListVolumesResponse, error) {
		return p.client.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: token, MaxEntries: n}, grpc.MaxCallRecvMsgSize(256<<20))
	}
	var entries int
	walk := func(n int32) error {
		entries = 0
		for token := ""; ; {
			r, err := list(token, n)
			if err != nil {
				return err
			}
			entries += len(r.Entries)
			if token = r.NextToken; token == "" {
				return nil
			}
		}
	}
	if err := walk(1000); err != nil || entries != scaleVolumes {
		t.Fatalf("%d volumes are listed, %v", entries, err)
	}
	used := p.program.processor(t)
	best, middle, worst := times(t, 5, func(int) error { return walk(1000) })
	check(fmt.Sprintf("walk in pages of 1,000 (median %v, worst %v, %v of processor time)", middle, worst, (p.program.processor(t)-used)/5), best, maxWalk)
	token := ""
	_, middle, worst = times(t, 200, func(int) error {
		r, err := list(token, pageSize)
		token = r.GetNextToken()
		return err
	})
	check(fmt.Sprintf("page of %d (worst %v)", pageSize, worst), middle, maxPage)
	_, middle, worst = times(t, 2000, func(i int) error {
		_, err := p.client.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: drivebay.VolumeID(scaleName(i * 37 % scaleVolumes))})
		return err
	})
	check("ControllerGetVolume (worst "+worst.String()+")", middle, maxGet)

	// While volumes change all the time, an answer is as new as the change, and no slower.
	all, changes := volumesOf(t, a), 0
	_, middle, worst = times(t, 50, func(i int) error {
		id := drivebay.VolumeID(scaleName(i))
		o, err := all.Get(t.Context(), id)
		if err != nil {
			return err
		}
		o.Status.Health = "BAD"
		o.ManagedFields = nil
		if _, err = all.ApplyStatus(t.Context(), &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: id, UID: o.UID}, Status: o.Status}, client.NodeOwner); err != nil {
			return err
		}
		changes++
		return nil
	})
	t.Logf("%d changes through the API server, each in %v (worst %v)", changes, middle.Round(time.Millisecond), worst.Round(time.Millisecond))
	_, middle, worst = times(t, 50, func(i int) error {
		_, err := p.client.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: drivebay.VolumeID(scaleName(i))})
		return err
	})
	check("ControllerGetVolume after changes (worst "+worst.String()+")", middle, maxGet)

	now, most := p.program.resident(t)
	t.Logf("resident: %.0f MiB, at most %.0f MiB; allowed are %d MiB", now, most, maxController)
	if most > maxController {
		t.Errorf("resident: at most %.0f MiB", most)
	}
	server, _ := a.server.resident(t)
	t.Logf("the API server has %.0f MiB", server)
}
