package repair

import (
	"testing"

	"github.com/drivebay/drivebay"
)

// TestLegsOfAnInactiveMirror: both drives of a mirror were gone and are back. LVM asks for a refresh,
// which does nothing to a mirror without a device: activation restores its legs, and a repair that
// changes nothing would end the repairs of the volume before it.
func TestLegsOfAnInactiveMirror(t *testing.T) {
	for _, c := range []struct {
		what  string
		below bool
		leg   leg
		want  bool
	}{
		{"active", true, leg{here: true}, true},
		{"inactive", false, leg{here: true}, false},
		{"inactive, and a leg is missing in LVM", false, leg{here: true, missing: true}, true},
		{"active, without the drive", true, leg{}, false},
	} {
		g := &symptoms{below: c.below, legs: []leg{c.leg}, facts: drivebay.Facts{LV: &drivebay.LVFacts{RefreshNeeded: true}}}
		if why, _ := needLegs(g); (why != "") != c.want {
			t.Errorf("%s: legs to restore: %q", c.what, why)
		}
	}
}
