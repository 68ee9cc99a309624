package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCopyHasFilesystemOfItsSource: the object of a copy has the filesystem of the source, also where the class has another default, and answers the
// request when it is repeated. A request for another filesystem is refused before there is an object.
func TestCopyHasFilesystemOfItsSource(t *testing.T) {
	c, api := leadingOver(t)
	s := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: drivebay.SnapshotID("s"), Generation: 1, ResourceVersion: "1"}}
	s.Spec.Node, s.Spec.Name, s.Spec.Volume = "m", "s", drivebay.VolumeID("v")
	s.Status.Phase, s.Status.FSType, s.Status.ObservedGeneration = v1alpha1.VolumeMade, "xfs", 1
	c.objects.snapshots.put(s)
	r := requested()
	r.Class.Backing, r.Source = drivebay.BackingThin, drivebay.Source{Snapshot: s.Name}
	ext4 := r
	ext4.FSType = "ext4"
	k := &creation{c: c, request: ext4, refused: map[string]bool{}}
	if _, err := k.without(t.Context(), drivebay.VolumeID(r.Name), nil); !errors.Is(err, drivebay.ErrInvalid) || len(api.made) > 0 {
		t.Errorf("requested with ext4: %v, %d objects", err, len(api.made))
	}
	k = &creation{c: c, request: r, refused: map[string]bool{}}
	o, err := k.without(t.Context(), drivebay.VolumeID(r.Name), nil)
	if err != nil || o.Spec.Class.FSType != "xfs" {
		t.Fatalf("%+v, %v", o, err)
	}
	for _, phase := range []v1alpha1.VolumePhase{"", v1alpha1.VolumeMade} {
		again := o.DeepCopy()
		again.Status.Phase, again.Status.Capacity, again.Status.Created = phase, gib, metav1.NewTime(time.Unix(1, 0))
		again.Status.Location.Kind = drivebay.LocationThin.String()
		if got, err := volumeStateOf(again).create(r, 0); got == stepFail {
			t.Errorf("%q: requested again: %v", phase, err)
		}
		if got, err := volumeStateOf(again).create(ext4, 0); got != stepFail || !errors.Is(err, drivebay.ErrExists) {
			t.Errorf("%q: requested again with ext4: %d, %v", phase, got, err)
		}
	}
}
