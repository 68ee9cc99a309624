package volumes

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// TestForget: spec.forget is acted on once, before a deletion that waits for the drive, and not for a volume whose drive
// is here: one that is pulled later does not take the record with it.
func TestForget(t *testing.T) {
	here, used := usedAs(drivebay.VolumeInUse, false), usedAs(drivebay.VolumeInUse, true)
	f := onceField{callForgetLost, v1alpha1.VolumeForgotten, "Forgotten",
		func(s *v1alpha1.VolumeSpec) *string { return &s.Forget }, func(s *v1alpha1.VolumeStatus) *string { return &s.Forget }}
	for name, c := range map[string]onceCase{
		"requested":             {"", "", here, outcome{}, callForgetLost, "", false},
		"its deletion waits":    {"", v1alpha1.ReleaseDelete, here, outcome{}, callForgetLost, "", false},
		"in use":                {"", "", used, outcome{did: callForgetLost, err: drivebay.ErrBusy}, callForgetLost, "Busy", false},
		"forgotten":             {"", "", nil, outcome{did: callForgetLost}, callNone, "Forgotten", true},
		"the drive is here":     {"", "", here, outcome{did: callForgetLost, err: drivebay.ErrRefused}, callForgetLost, "Refused", true},
		"not now":               {"", "", here, outcome{did: callForgetLost, err: drivebay.ErrUnavailable}, callForgetLost, "Unavailable", false},
		"the status was lost":   {"", "", nil, outcome{}, callNone, "Forgotten", true},
		"it came back":          {"", "", volume(drivebay.CSIUnknown), outcome{}, callNone, "Forgotten", true},
		"answered, then pulled": {"d", "", here, outcome{}, callNone, "", true},
		"answered, and deleted": {"d", v1alpha1.ReleaseDelete, nil, outcome{}, callDelete, "", true},
		"another drive":         {"c", "", here, outcome{}, callForgetLost, "", false},
	} {
		f.check(t, name, c)
	}
	o := object(1, v1alpha1.VolumeMade, "")
	o.Spec.Forget = "d"
	if s := answer(o, nil, outcome{}, time.Unix(1000, 0)); s.Forget != "" {
		t.Error("a volume counts as forgotten before all drives were read")
	}
}
