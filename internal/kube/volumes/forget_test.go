package volumes

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestForget: spec.forget is acted on once, before a deletion that waits for the drive, and not for a volume whose drive
// is here: one that is pulled later does not take the record with it.
func TestForget(t *testing.T) {
	found := volume(drivebay.CSIUnknown)
	for name, c := range map[string]struct {
		answered string // in the status
		release  string
		v        *drivebay.VolumeView
		out      outcome
		call     call
		reason   string
		final    bool // the node has answered
	}{
		"requested":             {"", "", usedAs(drivebay.VolumeInUse, false), outcome{}, callForgetLost, "", false},
		"its deletion waits":    {"", v1alpha1.ReleaseDelete, usedAs(drivebay.VolumeInUse, false), outcome{}, callForgetLost, "", false},
		"in use":                {"", "", usedAs(drivebay.VolumeInUse, true), outcome{did: callForgetLost, err: drivebay.ErrBusy}, callForgetLost, "InUse", false},
		"forgotten":             {"", "", nil, outcome{did: callForgetLost}, callNone, "Forgotten", true},
		"the drive is here":     {"", "", usedAs(drivebay.VolumeInUse, false), outcome{did: callForgetLost, err: drivebay.ErrRefused}, callForgetLost, "Refused", true},
		"not now":               {"", "", usedAs(drivebay.VolumeInUse, false), outcome{did: callForgetLost, err: drivebay.ErrUnavailable}, callForgetLost, "Unavailable", false},
		"the status was lost":   {"", "", nil, outcome{}, callNone, "Forgotten", true},
		"it came back":          {"", "", found, outcome{}, callNone, "Forgotten", true},
		"answered, then pulled": {"d", "", usedAs(drivebay.VolumeInUse, false), outcome{}, callNone, "", true},
		"answered, and deleted": {"d", v1alpha1.ReleaseDelete, nil, outcome{}, callDelete, "", true},
		"another drive":         {"c", "", usedAs(drivebay.VolumeInUse, false), outcome{}, callForgetLost, "", false},
	} {
		o := object(1, v1alpha1.VolumeMade, "")
		o.Spec.Release = c.release
		o.Spec.Forget, o.Status.Forget = "d", c.answered
		if got := requested(o, c.v); got != c.call {
			t.Errorf("%s: call %d, want %d", name, got, c.call)
		}
		c.out.listed = true
		s := answer(o, c.v, c.out, time.Unix(1000, 0))
		if status, reason := conditionOf(&s, v1alpha1.VolumeForgotten); reason != c.reason || (status == metav1.ConditionTrue) != (reason == "Forgotten") || s.Error != nil {
			t.Errorf("%s: %s %s, error %v", name, status, reason, s.Error)
		}
		if (s.Forget == "d") != c.final {
			t.Errorf("%s: answered %q", name, s.Forget)
		}
		o.Status = s
		if c.final && requested(o, usedAs(drivebay.VolumeInUse, false)) == callForgetLost {
			t.Errorf("%s: the call is made again", name)
		}
		o.Spec.Forget = ""
		if s := answer(o, c.v, outcome{listed: true}, time.Unix(2000, 0)); s.Forget != "" || meta.FindStatusCondition(s.Conditions, v1alpha1.VolumeForgotten) != nil {
			t.Errorf("%s: the answer stays without the field", name)
		}
	}
	o := object(1, v1alpha1.VolumeMade, "")
	o.Spec.Forget = "d"
	if s := answer(o, nil, outcome{}, time.Unix(1000, 0)); s.Forget != "" {
		t.Error("a volume counts as forgotten before all drives were read")
	}
}
