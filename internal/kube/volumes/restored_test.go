package volumes

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// counting is an engine that counts the calls that make or delete something.
type counting struct {
	Engine
	set   drivebay.VolumeSet
	calls int
}

func (e *counting) Listed() error                { return nil }
func (e *counting) Volumes() *drivebay.VolumeSet { return &e.set }

func (e *counting) CreateVolume(context.Context, drivebay.VolumeRequest) (v drivebay.Volume, err error) {
	e.calls++
	return v, nil
}

func (e *counting) AdoptVolume(context.Context, string) error { e.calls++; return nil }

func (e *counting) DeleteVolume(context.Context, string) error { e.calls++; return nil }

func (e *counting) CreateSnapshot(context.Context, string, string) (v drivebay.VolumeSnapshot, err error) {
	e.calls++
	return v, nil
}

func (e *counting) DeleteSnapshot(context.Context, string) error { e.calls++; return nil }

// oneObject is an API server with one object.
type oneObject[P wanted] struct {
	object  P
	deleted bool
}

func (a *oneObject[P]) Get(context.Context, string) (P, error)             { return a.object, nil }
func (a *oneObject[P]) Create(_ context.Context, o P, _ string) (P, error) { return o, nil }
func (a *oneObject[P]) Apply(_ context.Context, o P, _ string) (P, error)  { return o, nil }
func (a *oneObject[P]) Delete(context.Context, string, types.UID) error    { a.deleted = true; return nil }
func (a *oneObject[P]) ApplyStatus(_ context.Context, o P, _ string) (P, error) {
	a.object = o
	return o, nil
}

// TestRestoredObject: an object that was restored from a backup has no status, which said what became of its request. Nothing is made in
// place of a volume or snapshot whose data are away, and nothing is deleted.
func TestRestoredObject(t *testing.T) {
	made := metav1.Time{Time: time.Unix(1_000_000, 0)}
	writtenBy := func(who string, before time.Duration) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: who, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: made.Add(-before)}}}
	}
	const controller = client.ControllerOwner
	for name, c := range map[string]struct {
		fields   []metav1.ManagedFieldsEntry
		restored bool
	}{
		"made by the controller":                   {writtenBy(controller, time.Second), false},
		"restored by a program":                    {writtenBy("kubectl-create", 0), true},
		"restored with the owners of its fields":   {append(writtenBy("velero", 0), writtenBy(controller, time.Hour)...), true},
		"restored, and requested again since then": {append(writtenBy("velero", 0), writtenBy(controller, -time.Hour)...), false},
	} {
		for _, release := range []string{"", v1alpha1.ReleaseDelete} {
			for _, there := range []bool{false, true} {
				if there && release == "" {
					continue // nothing is made: the engine has it
				}
				meta := metav1.ObjectMeta{Generation: 1, UID: "u", CreationTimestamp: made, ManagedFields: c.fields}
				e := &counting{}
				n := New(Options{Name: "n", Engine: e, Log: slog.New(slog.DiscardHandler)})
				v := &v1alpha1.Volume{ObjectMeta: meta, Spec: object(1, "", "").Spec}
				v.Name, v.Spec.Release, v.Spec.Mode, v.Spec.Class = drivebay.VolumeID("a"), release, v1alpha1.ModeFilesystem, &v1alpha1.VolumeClass{Drives: "any", Backing: "partition"}
				s := &v1alpha1.Snapshot{ObjectMeta: meta, Spec: v1alpha1.SnapshotSpec{Node: "n", Name: "s", Volume: v.Name, Attempt: 1, Release: release}}
				s.Name = drivebay.SnapshotID("s")
				if there {
					e.set.Volumes = []*drivebay.VolumeView{volume(drivebay.CSICreated)}
					e.set.Snapshots = []drivebay.VolumeSnapshot{{ID: s.Name, Name: "s", Source: v.Name}}
				}
				volumes, snapshots := &oneObject[*v1alpha1.Volume]{object: v}, &oneObject[*v1alpha1.Snapshot]{object: s}
				n.volumes.api, n.snapshots.api = volumes, snapshots
				vCached, sCached := v.DeepCopy(), s.DeepCopy()
				vCached.ManagedFields, sCached.ManagedFields = nil, nil // as in the cache
				vDo, sDo := requested(v, n.volumes.find(v.Name)), requestedSnapshot(s, n.snapshots.find(s.Name))
				if _, err := n.volumes.call(t.Context(), vCached, vDo); err != nil {
					t.Fatal(err)
				}
				if _, err := n.snapshots.call(t.Context(), sCached, sDo); err != nil {
					t.Fatal(err)
				}
				if did := e.calls == 2; e.calls == 1 || did == c.restored {
					t.Errorf("%s, release %q, there %v: %d calls of the engine", name, release, there, e.calls)
				}
				if !c.restored {
					continue
				}
				want := v1alpha1.VolumeMissing
				if there {
					want = v1alpha1.VolumeMade
				}
				if volumes.deleted || snapshots.deleted || volumes.object.Status.Phase != want || snapshots.object.Status.Phase != want {
					t.Errorf("%s, release %q, there %v: volume %s, snapshot %s; deleted: %v, %v", name, release, there,
						volumes.object.Status.Phase, snapshots.object.Status.Phase, volumes.deleted, snapshots.deleted)
				}
				if e := volumes.object.Status.Error; there && (e == nil || e.Code != "Refused") {
					t.Errorf("%s: the request to delete it has the answer %+v", name, e)
				}
			}
		}
	}
}

// TestRestoredAdopts: an object that was restored from a backup adopts nothing: what it asked for was answered, perhaps of another drive.
func TestRestoredAdopts(t *testing.T) {
	made := metav1.Time{Time: time.Unix(1_000_000, 0)}
	for who, want := range map[string]int{client.ControllerOwner: 1, "velero": 0} {
		v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: drivebay.VolumeID("a"), Generation: 1, UID: "u", CreationTimestamp: made}, Spec: adopting("n", object(0, "", "")).Spec}
		v.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: who, Operation: metav1.ManagedFieldsOperationUpdate, Time: &made}}
		e := &counting{set: drivebay.VolumeSet{Found: []drivebay.FoundVolume{{ID: v.Name, Size: gib, Drives: []string{"d"}}}}}
		n := New(Options{Name: "n", Engine: e, Log: slog.New(slog.DiscardHandler)})
		api := &oneObject[*v1alpha1.Volume]{object: v}
		n.volumes.api = api
		if _, err := n.volumes.call(t.Context(), v, requested(v, n.volumes.find(v.Name))); err != nil {
			t.Fatal(err)
		}
		s := api.object.Status
		if e.calls != want || s.Phase != v1alpha1.VolumeFound || (s.Error != nil) != (want == 0) {
			t.Errorf("made by %s: %d calls, phase %s, error %+v", who, e.calls, s.Phase, s.Error)
		}
		o := &v1alpha1.Volume{ObjectMeta: v.ObjectMeta, Spec: v.Spec, Status: s}
		if got := requested(o, n.volumes.find(v.Name)); got != callNone {
			t.Errorf("made by %s: then call %d", who, got)
		}
	}
}
