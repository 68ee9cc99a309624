package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func numbered(i, version int, node string) *v1alpha1.Volume {
	return &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: drivebay.VolumeID(strconv.Itoa(i)), UID: types.UID(strconv.Itoa(i)), ResourceVersion: strconv.Itoa(version)},
		Spec:       v1alpha1.VolumeSpec{Node: node, Name: strconv.Itoa(i)},
		Status:     v1alpha1.VolumeStatus{Phase: v1alpha1.VolumeMade, Capacity: int64(version)},
	}
}

// listedObjects are objects of a cluster without snapshots.
func listedObjects(down func(string) string) *objects {
	s := newObjects(down, func(string) bool { return false })
	_ = s.snapshots.Replace(nil, "")
	return s
}

// TestSet: the set is that of the objects after any changes, sorted, and never changes after it was returned.
func TestSet(t *testing.T) {
	s := listedObjects(func(string) string { return "" })
	if s.volumes().Seq != 0 {
		t.Error("there is a set before the first list")
	}
	if err := s.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{}
	random := rand.New(rand.NewPCG(1, 2))
	for version := 1; version < 3000; version++ {
		o := numbered(random.IntN(200), version, "n")
		switch random.IntN(4) {
		case 0:
			_ = s.Delete(o)
			delete(want, o.Name)
		case 1:
			o.Status.Phase = v1alpha1.VolumePending
			_ = s.Update(o)
			delete(want, o.Name)
		default:
			_ = s.Update(o)
			want[o.Name] = uint64(version)
		}
		if random.IntN(3) > 0 {
			continue
		}
		set := s.volumes()
		got := map[string]uint64{}
		for _, v := range set.Volumes {
			got[v.ID] = v.Size
		}
		if !maps.Equal(got, want) || !slices.IsSortedFunc(set.Volumes, func(a, b *drivebay.VolumeView) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) }) {
			t.Fatalf("version %d: %d volumes, want %d", version, len(got), len(want))
		}
		if again := s.volumes(); again != set {
			t.Fatal("there is a new set without a change")
		}
	}
}

// TestVersions: an older version from the stream does not replace the answer to an own write, nor a new object the
// deleted one.
func TestVersions(t *testing.T) {
	s := listedObjects(func(string) string { return "" })
	s.put(numbered(1, 10, "n"))
	_ = s.Update(numbered(1, 9, "old"))
	newer := numbered(1, 12, "m")
	newer.UID = "another"
	s.put(newer)
	_ = s.Update(numbered(1, 11, "n"))
	_ = s.Delete(numbered(1, 11, "n"))
	if o, _ := s.get(newer.Name); o != newer {
		t.Errorf("%+v", o)
	}
}

// TestLateAnswer: the answer to an own request that arrives after the deletion does not bring the object back.
func TestLateAnswer(t *testing.T) {
	s := listedObjects(func(string) string { return "" })
	id := drivebay.VolumeID("1")
	there := func() bool { o, _ := s.get(id); return o != nil }
	s.put(numbered(1, 5, "n"))
	_ = s.Delete(numbered(1, 8, "n")) // the stream names the version of the deletion
	if s.put(numbered(1, 7, "n")); there() {
		t.Error("it is back after its deletion")
	}
	_ = s.Replace(nil, "20")
	if s.put(numbered(1, 19, "n")); there() {
		t.Error("it is back after a list without it")
	}
	if s.put(numbered(1, 21, "n")); !there() {
		t.Error("a new one is not taken")
	}
	s.drop(numbered(1, 21, "n")) // an own deletion
	if _ = s.Update(numbered(1, 21, "n")); there() {
		t.Error("it is back from the stream, which is late")
	}
}

// TestFollow: a call sees the last version of an object that is deleted while it waits, and the next change of it. Nothing that is
// kept for calls outlives them.
func TestFollow(t *testing.T) {
	s := listedObjects(func(string) string { return "" })
	_ = s.Replace(nil, "")
	changed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	for i := range 5000 {
		id := drivebay.VolumeID(strconv.Itoa(i))
		end, other := s.follow(id), s.follow(id)
		_, before := s.get(id)
		o := numbered(i, 10*i+1, "n")
		s.put(o)
		other()
		_, deletes := s.get(id)
		gone := numbered(i, 10*i+2, "n")
		gone.Status.Phase = v1alpha1.VolumeReleased
		_ = s.Delete(gone)
		_, after := s.get(id)
		if !changed(before) || !changed(deletes) || changed(after) || s.final(o) != gone {
			t.Fatalf("volume %d: making seen %v, deletion seen %v, another change %v, last version %v", i, changed(before), changed(deletes), changed(after), s.final(o))
		}
		end()
		s.get(id)
	}
	if s.volumes(); len(s.byID)+len(s.waiting)+len(s.lost) != 0 {
		t.Errorf("%d objects, %d that calls wait for, and %d lost ones are left", len(s.byID), len(s.waiting), len(s.lost))
	}
}

func lease(node string, renewed time.Time) *coordinationv1.Lease {
	seconds := int32(40)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "drivebay-node-" + node, Annotations: map[string]string{"drivebay.io/report": `{"mirrored":true}`}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: renewed}}}
}

// TestNodeDown: the volumes of a node without renewals are abnormal, until it returns. The clock of a node does not matter.
func TestNodeDown(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := newNodes(slog.New(slog.DiscardHandler))
	n.now = func() time.Time { return now }
	s := listedObjects(n.down)
	look := func() { s.nodesChanged(n.look()) }
	condition := func(i int) string {
		v, _ := s.volumes().Get(drivebay.VolumeID(strconv.Itoa(i)))
		if v.Condition.Abnormal() {
			return v.Condition[0].Reason
		}
		return ""
	}
	check := func(when string, want ...string) {
		t.Helper()
		look()
		for i, reason := range want {
			if got := condition(i); got != reason {
				t.Errorf("%s: volume %d: %q, want %q", when, i, got, reason)
			}
		}
		if snap, known := s.volumes().GetSnapshot("snap"); !known || (snap.Unavailable != "") != (want[0] != "") {
			t.Errorf("%s: the snapshot of a: %+v", when, snap)
		}
	}
	_ = s.Replace([]any{numbered(0, 1, "a"), numbered(1, 2, "b"), numbered(2, 3, "gone")}, "")
	_ = s.snapshots.Replace([]any{&v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: "snap", ResourceVersion: "1"}, Spec: v1alpha1.SnapshotSpec{Node: "a"}, Status: v1alpha1.SnapshotStatus{Phase: v1alpha1.VolumeMade}}}, "")
	if why := n.unread(); len(why) == 0 {
		t.Error("nothing is unknown before the nodes are listed")
	}
	_ = n.Replace([]any{lease("a", now.Add(-30*time.Second)), lease("b", now.Add(-time.Hour))}, "")
	if why := n.unread(); len(why) != 0 {
		t.Errorf("unknown: %v", why)
	}
	s.nodesChanged([]string{"gone"})
	check("start", "", "NodeDown", "NodeDown")
	_ = n.Update(lease("a", now.Add(-5*time.Hour))) // its clock is wrong
	_ = n.Update(lease("b", now.Add(-6*time.Hour)))
	check("renewed", "", "")
	now = now.Add(30 * time.Second)
	_ = n.Update(lease("b", now.Add(-5*time.Hour)))
	_ = n.Replace([]any{lease("a", now.Add(-5*time.Hour-30*time.Second)), lease("b", now.Add(-5*time.Hour))}, "")
	now = now.Add(20 * time.Second)
	check("a is silent", "NodeDown", "")
	_ = n.Update(lease("a", now))
	check("a is back", "", "")
}

// BenchmarkGet is a call for one volume of 100,000 after another one has changed.
// TestUnreadableReport: a node whose report cannot be read is there: it may have a volume without an object, and is not gone for good.
func TestUnreadableReport(t *testing.T) {
	c := New(Options{Log: slog.New(slog.DiscardHandler)})
	_ = c.objects.Replace(nil, "")
	_ = c.objects.snapshots.Replace(nil, "")
	bad := lease("a", time.Now())
	bad.Annotations["drivebay.io/report"] = `{"mirrored":"yes"}`
	_ = c.nodes.Replace([]any{bad, lease("b", time.Now())}, "")
	if err := c.Missing(drivebay.VolumeID("1")); !errors.Is(err, drivebay.ErrUnavailable) || c.nodes.gone("a") {
		t.Errorf("a volume without an object: %v; the node is gone: %v", err, c.nodes.gone("a"))
	}
	_ = c.nodes.Update(lease("a", time.Now()))
	if err := c.Missing(drivebay.VolumeID("1")); !errors.Is(err, drivebay.ErrNotFound) {
		t.Errorf("its report can be read: %v", err)
	}
	_ = c.nodes.Delete(bad)
	if !c.nodes.gone("a") {
		t.Error("its Lease is deleted, and it is not gone")
	}
}

// TestObjectThatIsNotWritten: a node renews its Lease, and the API server does not take the object of a volume from it. What the
// object says of the volume is old: the node may have lost its drive since.
func TestObjectThatIsNotWritten(t *testing.T) {
	c := New(Options{Log: slog.New(slog.DiscardHandler)})
	s, n := c.objects, c.nodes
	_ = s.Replace([]any{numbered(0, 1, "a"), numbered(1, 2, "a"), numbered(2, 3, "b")}, "")
	_ = s.snapshots.Replace([]any{&v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: "snap", ResourceVersion: "1"}, Spec: v1alpha1.SnapshotSpec{Node: "a"}, Status: v1alpha1.SnapshotStatus{Phase: v1alpha1.VolumeMade}}}, "")
	for _, tc := range []struct{ report, want string }{
		{`{"mirrored":true}`, ""},
		{`{"mirrored":true,"old":["` + drivebay.VolumeID("0") + `","snap"]}`, "0 snap"},
		{`{"mirrored":true,"old":["*"]}`, "0 1 snap"},
		{`{"mirrored":true}`, ""},
	} {
		l := lease("a", time.Now())
		l.Annotations["drivebay.io/report"] = tc.report
		_ = n.Replace([]any{l, lease("b", time.Now())}, "")
		s.nodesChanged(n.look())
		var got []string
		for i := range 3 {
			if v, _ := s.volumes().Get(drivebay.VolumeID(strconv.Itoa(i))); v.Condition.Abnormal() && v.OperationalStatus == drivebay.OperationalUnknown {
				got = append(got, strconv.Itoa(i))
			}
		}
		if snap, _ := s.volumes().GetSnapshot("snap"); snap.Unavailable != "" {
			got = append(got, "snap")
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: not known: %q, want %q", tc.report, got, tc.want)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s := listedObjects(func(string) string { return "" })
	var all []any
	for i := range 100_000 {
		all = append(all, numbered(i, i+1, fmt.Sprint("node-", i%100)))
	}
	_ = s.Replace(all, "")
	began := time.Now()
	s.volumes()
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "first-ms")
	id := drivebay.VolumeID("7")
	for i := 0; b.Loop(); i++ {
		s.put(numbered(i%1000, 200_000+i, "n"))
		if _, ok := s.volumes().Get(id); !ok {
			b.Fatal("not found")
		}
	}
}
