package plan

import (
	"testing"

	"github.com/drivebay/drivebay"
)

// TestSurvives: a mirror survives the removal of one drive only if another drive is ONLINE and its leg has
// all data.
func TestSurvives(t *testing.T) {
	mirror := func(m *drivebay.Mirror) *drivebay.Volume {
		return &drivebay.Volume{Location: drivebay.Location{Kind: drivebay.LocationMirror, Drives: []string{"naa-1", "naa-2"}}, Mirror: m}
	}
	online := func(one, other drivebay.Status) *drivebay.Snapshot {
		return &drivebay.Snapshot{Drives: []drivebay.Drive{{ID: "naa-1", Status: one}, {ID: "naa-2", Status: other}}}
	}
	on, off := drivebay.StatusOnline, drivebay.StatusOffline
	for name, row := range map[string]struct {
		v    *drivebay.Volume
		s    *drivebay.Snapshot
		want bool
	}{
		"both legs have all data":           {mirror(&drivebay.Mirror{}), online(on, on), true},
		"nothing is recorded":               {mirror(nil), online(off, on), true},
		"the other leg alone has all data":  {mirror(&drivebay.Mirror{Current: "naa-2"}), online(on, on), true},
		"this leg alone has all data":       {mirror(&drivebay.Mirror{Current: "naa-1"}), online(on, on), false},
		"it is not known which leg has all": {mirror(&drivebay.Mirror{Doubt: "both were used"}), online(on, on), false},
		"the other drive is offline":        {mirror(&drivebay.Mirror{}), online(on, off), false},
		"a linear volume":                   {&drivebay.Volume{Location: drivebay.Location{Kind: drivebay.LocationLVM, Drives: []string{"naa-1"}}}, online(on, on), false},
	} {
		if got := survives(row.v, "naa-1", row.s); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
