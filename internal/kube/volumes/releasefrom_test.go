package volumes

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// usedAs returns a volume with a usage, in use by a pod or not.
func usedAs(u drivebay.VolumeUsage, used bool) *drivebay.VolumeView {
	v := volume(drivebay.CSICreated)
	v.Usage, v.Location.Drives = u, []string{"d"}
	if used {
		v.Publications = []drivebay.Publication{{Path: "/p", Staging: true}}
	}
	return v
}

func conditionOf(s *v1alpha1.VolumeStatus, kind string) (status metav1.ConditionStatus, reason string) {
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		return "", ""
	}
	return c.Status, c.Reason
}

// TestReleaseFrom: spec.releaseFrom is acted on once, when no pod uses the volume: a drive that stays after all and leaves
// later does not take the data with it.
func TestReleaseFrom(t *testing.T) {
	for name, c := range map[string]struct {
		answered string // in the status
		v        *drivebay.VolumeView
		out      outcome
		call     call
		reason   string
		final    bool // the node has answered
	}{
		"requested":              {"", usedAs(drivebay.VolumeReleasing, false), outcome{}, callReleaseFrom, "", false},
		"in use":                 {"", usedAs(drivebay.VolumeReleasing, true), outcome{}, callNone, "InUse", false},
		"released":               {"", usedAs(drivebay.VolumeReleased, false), outcome{did: callReleaseFrom}, callReleaseFrom, "Released", true},
		"no drive leaves":        {"", usedAs(drivebay.VolumeInUse, false), outcome{did: callReleaseFrom, err: drivebay.ErrInvalid}, callReleaseFrom, "Invalid", true},
		"the host has it":        {"", usedAs(drivebay.VolumeReleasing, false), outcome{did: callReleaseFrom, err: drivebay.ErrBusy}, callReleaseFrom, "Busy", true},
		"not now":                {"", usedAs(drivebay.VolumeReleasing, false), outcome{did: callReleaseFrom, err: drivebay.ErrUnavailable}, callReleaseFrom, "Unavailable", false},
		"the drive leaves again": {"d", usedAs(drivebay.VolumeReleasing, false), outcome{}, callNone, "", true},
		"another drive":          {"c", usedAs(drivebay.VolumeReleasing, false), outcome{}, callReleaseFrom, "", false},
		"missing":                {"", nil, outcome{}, callNone, "", false},
	} {
		o := object(1, v1alpha1.VolumeMade, "")
		o.Spec.ReleaseFrom, o.Status.ReleaseFrom = "d", c.answered
		if got := requested(o, c.v); got != c.call {
			t.Errorf("%s: call %d, want %d", name, got, c.call)
		}
		c.out.listed = true
		s := answer(o, c.v, c.out, time.Unix(1000, 0))
		if status, reason := conditionOf(&s, v1alpha1.VolumeReleasedFrom); reason != c.reason || (status == metav1.ConditionTrue) != (reason == "Released") || s.Error != nil {
			t.Errorf("%s: %s %s, error %v", name, status, reason, s.Error)
		}
		if (s.ReleaseFrom == "d") != c.final {
			t.Errorf("%s: answered %q", name, s.ReleaseFrom)
		}
		o.Status = s
		if c.final && requested(o, c.v) == callReleaseFrom {
			t.Errorf("%s: the call is made again", name)
		}
		o.Spec.ReleaseFrom = ""
		if s := answer(o, c.v, outcome{listed: true}, time.Unix(2000, 0)); s.ReleaseFrom != "" || meta.FindStatusCondition(s.Conditions, v1alpha1.VolumeReleasedFrom) != nil {
			t.Errorf("%s: the answer stays without the field", name)
		}
	}
}
