package plan

import (
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestRefusals: the plan of a command about a volume says why the daemon would refuse it, and only then.
func TestRefusals(t *testing.T) {
	for name, row := range map[string]struct {
		of   OfVolume
		make func(*drivebay.VolumeView, *drivebay.Drive)
		want string // "": it is not refused
	}{
		"delete": {Delete, func(*drivebay.VolumeView, *drivebay.Drive) {}, ""},
		"delete, mounted": {Delete, func(v *drivebay.VolumeView, _ *drivebay.Drive) {
			v.Publications = []drivebay.Publication{{Path: "/pod"}}
		}, "it is mounted at /pod"},
		"delete, drive is gone":    {Delete, func(_ *drivebay.VolumeView, d *drivebay.Drive) { d.Status = drivebay.StatusOffline }, "drive a: unavailable: it is not ONLINE"},
		"delete, not claimed":      {Delete, func(_ *drivebay.VolumeView, d *drivebay.Drive) { d.Claim = nil }, "it is not claimed"},
		"delete half of a mirror":  {Delete, func(v *drivebay.VolumeView, d *drivebay.Drive) { mirror(v); d.Status = drivebay.StatusOffline }, ""},
		"retry":                    {Retry, func(*drivebay.VolumeView, *drivebay.Drive) {}, "no failure to retry"},
		"retry a removal":          {Retry, failed, ""},
		"retry, the drive is gone": {Retry, func(v *drivebay.VolumeView, d *drivebay.Drive) { failed(v, d); d.Status = drivebay.StatusOffline }, "it is not ONLINE"},
		"retry a mount": {Retry, func(v *drivebay.VolumeView, d *drivebay.Drive) {
			failed(v, d)
			v.Failure.Before = drivebay.CSIVolumeReady
		}, "the kubelet retries it"},
		"forget":                {Forget, func(*drivebay.VolumeView, *drivebay.Drive) {}, "is ONLINE"},
		"forget, drive is gone": {Forget, func(_ *drivebay.VolumeView, d *drivebay.Drive) { d.Status = drivebay.StatusOffline }, ""},
	} {
		v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: "v", Name: "data", CSIStatus: drivebay.CSICreated, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"a"}}}}
		s := &drivebay.Snapshot{Drives: []drivebay.Drive{{ID: "a", Status: drivebay.StatusOnline, Claim: &drivebay.Claim{}}, {ID: "b", Status: drivebay.StatusOnline, Claim: &drivebay.Claim{}}}}
		row.make(v, &s.Drives[0])
		text := row.of(Facts{Drives: s, Volumes: &drivebay.VolumeSet{Volumes: []*drivebay.VolumeView{v}}}, "v").Text("x")
		if strings.Contains(text, "would be refused now") != (row.want != "") || !strings.Contains(text, row.want) {
			t.Errorf("%s: want %q:\n%s", name, row.want, text)
		}
	}
}

func mirror(v *drivebay.VolumeView) {
	v.Location.Kind, v.Location.Drives = drivebay.LocationMirror, []string{"a", "b"}
}

// failed is a volume whose removal failed.
func failed(v *drivebay.VolumeView, _ *drivebay.Drive) {
	v.CSIStatus, v.Failure = drivebay.CSIFailed, &drivebay.Failure[drivebay.CSIStatus]{Before: drivebay.CSIRemoving, Cause: "disk full", Tries: 1}
}
