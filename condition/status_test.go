package condition

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

func TestVolumeHealth(t *testing.T) {
	const g, u, s, b = drivebay.HealthGood, drivebay.HealthUnknown, drivebay.HealthSuspect, drivebay.HealthBad
	for _, c := range []struct {
		legs []drivebay.Health
		want drivebay.Health
	}{
		{[]drivebay.Health{g}, g}, {[]drivebay.Health{u}, u}, {[]drivebay.Health{s}, s}, {[]drivebay.Health{b}, b},
		{[]drivebay.Health{g, g}, g}, {[]drivebay.Health{g, b}, s}, {[]drivebay.Health{g, s}, s}, {[]drivebay.Health{g, u}, u}, {[]drivebay.Health{s, b}, s}, {[]drivebay.Health{u, b}, s}, {[]drivebay.Health{b, b}, b},
	} {
		f := sound(drivebay.LocationMirror)
		f.Drives, f.Volume.Location.Drives = f.Drives[:len(c.legs)], f.Volume.Location.Drives[:len(c.legs)]
		worst := g
		for i, h := range c.legs {
			f.Drives[i].Health, worst = h, worst.Worse(h)
		}
		if got := HealthOf(f); got != c.want {
			t.Errorf("a mirror of %v is %v, want %v", c.legs, got, c.want)
		}
		f.LV.SyncPercent = ptr(99.0)
		if got := HealthOf(f); got != worst {
			t.Errorf("a mirror of %v out of sync is %v, want %v", c.legs, got, worst)
		}
	}
	f := sound(drivebay.LocationMirror)
	f.Drives = f.Drives[:1]
	if got := HealthOf(f); got != s {
		t.Errorf("a mirror with a leg gone is %v", got)
	}
	f.Drives[0].Health = b
	if got := HealthOf(f); got != b {
		t.Errorf("a mirror with a leg gone and the other BAD is %v", got)
	}
	if got := HealthOf(drivebay.Facts{Volume: drivebay.Volume{Health: s}}); got != s {
		t.Errorf("with no look at the drives it is %v, not what it was", got)
	}
}

func TestOperationalStatus(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*drivebay.Facts)
		want   drivebay.OperationalStatus
	}{
		"sound":       {func(*drivebay.Facts) {}, drivebay.Operative},
		"was missing": {func(f *drivebay.Facts) { f.Volume.OperationalStatus = drivebay.Missing }, drivebay.Operative},
		"drive bad":   {func(f *drivebay.Facts) { f.Drives[0].Health = drivebay.HealthBad }, drivebay.Operative},
		"hung":        {func(f *drivebay.Facts) { f.IO.Frozen = time.Minute }, drivebay.Inoperative},
		"unmounted":   {func(f *drivebay.Facts) { f.Mount.Target.Mounted = false }, drivebay.Operative},
		"pulled":      {func(f *drivebay.Facts) { f.Drives[0].Status = drivebay.StatusOffline }, drivebay.Missing},
		"pulled, with a peer": {func(f *drivebay.Facts) {
			f.Drives[0].Status, f.Replication = drivebay.StatusOffline, &drivebay.ReplicationInfo{Status: drivebay.ReplicationDegraded, Primary: true, Remote: true}
		}, drivebay.Operative},
		"pulled, not proven": {func(f *drivebay.Facts) { f.Drives, f.Complete = []drivebay.Drive{}, false }, drivebay.OperationalUnknown},
		"removed outside":    {func(f *drivebay.Facts) { f.Gone = true }, drivebay.Missing},
		"not looked at":      {func(f *drivebay.Facts) { f.Drives = nil }, drivebay.OperationalUnknown},
		"nothing known":      {func(f *drivebay.Facts) { *f = drivebay.Facts{} }, drivebay.OperationalUnknown},
		"made":               {func(f *drivebay.Facts) { f.Volume.CSIStatus, f.Gone = drivebay.CSICreating, true }, drivebay.OperationalStaging},
		"half made":          {func(f *drivebay.Facts) { failing(&f.Volume, drivebay.CSICreating); f.Gone = true }, drivebay.OperationalStaging},
		"grown":              {func(f *drivebay.Facts) { f.Volume.CSIStatus = drivebay.CSIResized }, drivebay.Maintenance},
		"leaving":            {func(f *drivebay.Facts) { f.Volume.Usage = drivebay.VolumeReleasing }, drivebay.Maintenance},
		"removing":           {func(f *drivebay.Facts) { f.Volume.CSIStatus = drivebay.CSIRemoving }, drivebay.OperationalRemoving},
		"half removed":       {func(f *drivebay.Facts) { failing(&f.Volume, drivebay.CSIRemoving) }, drivebay.OperationalRemoving},
		"removed":            {func(f *drivebay.Facts) { f.Volume.CSIStatus, f.Gone = drivebay.CSIRemoved, true }, drivebay.OperationalRemoved},
	} {
		f := sound(drivebay.LocationPartition)
		c.change(&f)
		if got := OperationalStatusOf(f); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	f := sound(drivebay.LocationMirror)
	f.Drives[0].Status = drivebay.StatusOffline
	if got := OperationalStatusOf(f); got != drivebay.Operative {
		t.Errorf("a mirror with a leg pulled is %v", got)
	}
}

func TestVolumeSurvivesJSON(t *testing.T) {
	want := sound(drivebay.LocationThin).Volume
	want.Parameters = map[string]string{"drivebay.io/backing": "thin"}
	failing(&want, drivebay.CSIResizing)
	want.UsageFailure = &drivebay.Failure[drivebay.VolumeUsage]{Before: drivebay.VolumeReleasing, Cause: "no room", Since: time.Unix(5, 0).UTC(), Retry: drivebay.RetryTimed, Next: time.Unix(9, 0).UTC()}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got drivebay.Volume
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nreads back as %+v, %v", b, got, err)
	}
	c := Of(drivebay.Facts{Volume: want})
	if b, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	var back drivebay.Condition
	if err := json.Unmarshal(b, &back); err != nil || len(back) == 0 || !reflect.DeepEqual(back, c) {
		t.Errorf("%s\nreads back as %+v, %v", b, back, err)
	}
}
