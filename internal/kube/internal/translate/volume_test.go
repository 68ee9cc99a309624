package translate

import (
	"reflect"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func view() *drivebay.VolumeView {
	return &drivebay.VolumeView{
		Volume: drivebay.Volume{
			ID: drivebay.VolumeID("pvc-1"), Name: "pvc-1", Node: "node-1", Size: 10 << 30, Mode: drivebay.ModeFS, FSType: "xfs",
			Parameters: drivebay.Class{Drives: drivebay.TypeNVMe, Backing: drivebay.BackingMirror, Wipe: drivebay.WipeZero, FSType: "xfs"}.Parameters(),
			Source:     drivebay.Source{Volume: "abc"}, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Location: drivebay.Location{Kind: drivebay.LocationMirror, Drives: []string{"naa-1", "naa-2"}, VG: "vg", LV: "lv", Instance: "tag"},
			Health:   drivebay.HealthSuspect, OperationalStatus: drivebay.Operative, CSIStatus: drivebay.CSIPublished, Usage: drivebay.VolumeInUse,
			Publications: []drivebay.Publication{{Path: "/staging", Staging: true}, {Path: "/pod", ReadOnly: true}},
		},
		Condition: drivebay.Condition{{Severity: drivebay.SeverityDegraded, Reason: "DiskDegrading", Message: "drive naa-1 is SUSPECT"}},
	}
}

// TestView: what a node observes of a volume comes back from its object.
func TestView(t *testing.T) {
	raw := view()
	raw.Mode, raw.FSType, raw.Condition, raw.Publications = drivebay.ModeRawPart, "", nil, nil
	raw.Location = drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"naa-1"}, Partition: "guid"}
	unknown := &drivebay.VolumeView{Volume: drivebay.Volume{ID: drivebay.VolumeID("x"), Node: "node-1", Size: 1 << 20}}
	for name, v := range map[string]*drivebay.VolumeView{"filesystem": view(), "block": raw, "found": unknown} {
		o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: v.ID}, Spec: SpecOfVolume(&v.Volume, v.Node)}
		Observe(&o.Status, v)
		if got := View(o); !reflect.DeepEqual(got, v) {
			t.Errorf("%s: %+v\nwant %+v", name, got, v)
		}
	}
}

// TestRequest: the request in a spec is the one that it was made from, with the defaults of the class.
func TestRequest(t *testing.T) {
	class, err := drivebay.ParseClass(map[string]string{drivebay.ParameterBacking: "lvm", drivebay.ParameterClass: "hdd"})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]drivebay.VolumeRequest{
		"filesystem": {Name: "pvc-1", Size: drivebay.SizeRange{Required: 1 << 30, Limit: 2 << 30}, Class: class},
		"block":      {Name: "pvc-1", Block: true, Class: class, Source: drivebay.Source{Snapshot: "s"}},
	} {
		spec := SpecOf(r, "node-1")
		got, err := RequestOf(&spec)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, r)
		}
	}
	xfs := SpecOf(drivebay.VolumeRequest{Name: "pvc-1", FSType: "xfs", Class: class}, "node-1")
	if got, err := RequestOf(&xfs); err != nil || got.Filesystem() != "xfs" {
		t.Errorf("the filesystem of the capability: %q, %v", got.Filesystem(), err)
	}
	if _, err := RequestOf(&v1alpha1.VolumeSpec{Node: "node-1", Name: "pvc-1"}); err == nil {
		t.Error("a spec without a class is a request")
	}
}
