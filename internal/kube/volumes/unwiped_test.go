package volumes

import (
	"log/slog"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMissingIsNotDeleted: the records of a node were lost while the drive of a volume was away. The object has the volume,
// which is not wiped: its deletion waits for the drive, or for a person who gives it up.
func TestMissingIsNotDeleted(t *testing.T) {
	o := released(object(1, v1alpha1.VolumeMade, ""))
	o.Spec.Release = ""
	o.Status = answer(o, nil, outcome{listed: true}, time.Unix(1000, 0))
	if o.Status.Phase != v1alpha1.VolumeMissing {
		t.Fatalf("it is %s", o.Status.Phase)
	}
	o = released(o)
	o.Generation++
	for range 2 { // the answer does not end it
		if got := requested(o, nil); got != callNone {
			t.Fatalf("call %d", got)
		}
		o.Status = answer(o, nil, outcome{listed: true}, time.Unix(2000, 0))
		if e := o.Status.Error; o.Status.Phase != v1alpha1.VolumeMissing || e == nil || e.Code != "Unavailable" {
			t.Fatalf("%s, %+v", o.Status.Phase, e)
		}
	}
	back := o.DeepCopy() // the drive returns
	if got := requested(back, volume(drivebay.CSICreated)); got != callDelete {
		t.Errorf("with its drive: call %d", got)
	}
	o.Spec.Forget = "d"
	o.Status = answer(o, nil, outcome{listed: true}, time.Unix(3000, 0))
	if got := requested(o, nil); got != callDelete || o.Status.Error != nil || o.Status.Phase != v1alpha1.VolumeReleasing {
		t.Errorf("given up: call %d, %s, %+v", got, o.Status.Phase, o.Status.Error)
	}
	found := object(0, v1alpha1.VolumeMissing, "") // never made by a request: nothing says that it has data
	if got := requested(released(found), nil); got != callDelete {
		t.Errorf("only found: call %d", got)
	}
}

// TestMissingSnapshotIsNotDeleted: the same for a snapshot, until its object is deleted: a new one has no status.
func TestMissingSnapshotIsNotDeleted(t *testing.T) {
	o := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: drivebay.SnapshotID("s"), Generation: 2}, Spec: v1alpha1.SnapshotSpec{Node: "n", Name: "s", Attempt: 1}}
	o.Status.Phase = v1alpha1.VolumeMissing
	o.Spec.Release = v1alpha1.ReleaseDelete
	for range 2 {
		if got := requestedSnapshot(o, nil); got != callNone {
			t.Fatalf("call %d", got)
		}
		o.Status = answerSnapshot(o, nil, outcome{listed: true}, time.Unix(1000, 0))
		if e := o.Status.Error; o.Status.Phase != v1alpha1.VolumeMissing || e == nil || e.Code != "Unavailable" {
			t.Fatalf("%s, %+v", o.Status.Phase, e)
		}
	}
	if got := requestedSnapshot(o, &drivebay.VolumeSnapshot{}); got != callDelete {
		t.Errorf("with its drive: call %d", got)
	}
	o.Status = v1alpha1.SnapshotStatus{}
	if got := requestedSnapshot(o, nil); got != callDelete {
		t.Errorf("a new object: call %d", got)
	}
}

// TestDeletedWhileReinstalled: the deletion of a volume was requested while its node was down, and the node lost its records then. While a
// drive of the volume is away, no node says that it is wiped.
func TestDeletedWhileReinstalled(t *testing.T) {
	drive := func(status drivebay.Status, usage drivebay.Usage) []drivebay.Drive {
		return []drivebay.Drive{{ID: "d", Status: status, Usage: usage}}
	}
	for name, c := range map[string]struct {
		drives  []drivebay.Drive
		forget  string
		deleted bool // the engine had it in removal, and then no more
		calls   int
	}{
		"the drive is not known":       {nil, "", false, 0},
		"it is away":                   {drive(drivebay.StatusOffline, drivebay.UsageInUse), "", false, 0},
		"it was taken out":             {drive(drivebay.StatusOffline, drivebay.UsageRemoved), "", false, 1},
		"it is there without a volume": {drive(drivebay.StatusOnline, drivebay.UsageInUse), "", false, 1},
		"it is given up":               {nil, "d", false, 1},
		"another drive is given up":    {nil, "e", false, 0},
		"it was deleted":               {nil, "", true, 1},
	} {
		o := released(object(1, v1alpha1.VolumeMade, ""))
		o.Name, o.Status.Location.Drives, o.Spec.Forget = drivebay.VolumeID("a"), []string{"d"}, c.forget
		o.Generation++
		e := &counting{set: drivebay.VolumeSet{Seq: 1, Drives: &drivebay.Snapshot{Drives: c.drives}}}
		n := New(Options{Name: "n", Engine: e, Log: slog.New(slog.DiscardHandler)})
		n.volumes.remember(o.Name, func(m *memory[*v1alpha1.Volume]) { m.deleted = c.deleted })
		out := n.runVolume(t.Context(), o, callDelete)
		s := answer(o, nil, out, time.Unix(1000, 0))
		if done := s.Phase == v1alpha1.VolumeReleased; e.calls != c.calls || done != (c.calls == 1) || (s.Error == nil) != done || !done && s.Error.Code != "Unavailable" {
			t.Errorf("%s: %d calls, %s, %+v", name, e.calls, s.Phase, s.Error)
		}
	}
}

// TestSnapshotDeletedWhileReinstalled: the same for a snapshot. Its object gives it up when it is deleted.
func TestSnapshotDeletedWhileReinstalled(t *testing.T) {
	for name, c := range map[string]struct {
		drives  []drivebay.Drive
		removed bool // by this node, which could not write the status then
		done    bool
	}{
		"the drive is not known":         {nil, false, false},
		"it is away":                     {[]drivebay.Drive{{ID: "d", Status: drivebay.StatusOffline, Usage: drivebay.UsageInUse}}, false, false},
		"it was taken out":               {[]drivebay.Drive{{ID: "d", Status: drivebay.StatusOffline, Usage: drivebay.UsageRemoved}}, false, true},
		"it is there without a snapshot": {[]drivebay.Drive{{ID: "d", Status: drivebay.StatusOnline}}, false, true},
		"it was removed":                 {nil, true, true},
	} {
		o := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: drivebay.SnapshotID("s"), Generation: 2},
			Spec: v1alpha1.SnapshotSpec{Node: "n", Name: "s", Attempt: 1, Release: v1alpha1.ReleaseDelete}}
		o.Status.Phase, o.Status.Location.Drives = v1alpha1.VolumeMade, []string{"d"}
		e := &counting{set: drivebay.VolumeSet{Seq: 1, Drives: &drivebay.Snapshot{Drives: c.drives}}}
		n := New(Options{Name: "n", Engine: e, Log: slog.New(slog.DiscardHandler)})
		if c.removed {
			n.opt.Engine = &counting{set: drivebay.VolumeSet{Seq: 1, Drives: &drivebay.Snapshot{Drives: []drivebay.Drive{{ID: "d", Status: drivebay.StatusOnline}}}}}
			_ = n.runSnapshot(t.Context(), o, callDelete)
			n.opt.Engine = e
		}
		out := n.runSnapshot(t.Context(), o, callDelete)
		s := answerSnapshot(o, nil, out, time.Unix(1000, 0))
		if done := s.Phase == v1alpha1.VolumeReleased; done != c.done || (s.Error == nil) != done || !done && s.Error.Code != "Unavailable" {
			t.Errorf("%s: %s, %+v", name, s.Phase, s.Error)
		}
	}
}

// TestFoundIsShownFirst: a node has shown all that it has once the volumes on drives without a claim have objects as well: those of a node
// that has lost its records are among them. Until then no deletion of a volume without an object is acknowledged.
func TestFoundIsShownFirst(t *testing.T) {
	id := drivebay.VolumeID("a")
	e := &counting{set: drivebay.VolumeSet{Seq: 1, Found: []drivebay.FoundVolume{{ID: id, Size: gib, Drives: []string{"d"}}}}}
	n := New(Options{Name: "n", Engine: e, Log: slog.New(slog.DiscardHandler)})
	volumes, snapshots := client.NewCache[v1alpha1.Volume](func(string) {}), client.NewCache[v1alpha1.Snapshot](func(string) {})
	n.volumes.objects, n.snapshots.objects = volumes, snapshots
	_ = volumes.Replace(nil, "1")
	_ = snapshots.Replace(nil, "1")
	if n.mirrored() {
		t.Error("a volume that was found has no object, and all are shown")
	}
	volumes.Put(&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: id, ResourceVersion: "2"}})
	if !n.mirrored() {
		t.Error("it has an object, and is not shown")
	}
}
