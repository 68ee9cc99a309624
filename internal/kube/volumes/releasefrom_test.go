package volumes

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// TestReleaseFrom: spec.releaseFrom is acted on once, when no pod uses the volume: a drive that stays after all and leaves
// later does not take the data with it.
func TestReleaseFrom(t *testing.T) {
	f := onceField{callReleaseFrom, v1alpha1.VolumeReleasedFrom, "Released",
		func(s *v1alpha1.VolumeSpec) *string { return &s.ReleaseFrom }, func(s *v1alpha1.VolumeStatus) *string { return &s.ReleaseFrom }}
	for name, c := range map[string]onceCase{
		"requested":              {"", "", usedAs(drivebay.VolumeReleasing, false), outcome{}, callReleaseFrom, "", false},
		"in use":                 {"", "", usedAs(drivebay.VolumeReleasing, true), outcome{}, callNone, "InUse", false},
		"released":               {"", "", usedAs(drivebay.VolumeReleased, false), outcome{did: callReleaseFrom}, callReleaseFrom, "Released", true},
		"no drive leaves":        {"", "", usedAs(drivebay.VolumeInUse, false), outcome{did: callReleaseFrom, err: drivebay.ErrInvalid}, callReleaseFrom, "Invalid", true},
		"the host has it":        {"", "", usedAs(drivebay.VolumeReleasing, false), outcome{did: callReleaseFrom, err: drivebay.ErrBusy}, callReleaseFrom, "Busy", true},
		"not now":                {"", "", usedAs(drivebay.VolumeReleasing, false), outcome{did: callReleaseFrom, err: drivebay.ErrUnavailable}, callReleaseFrom, "Unavailable", false},
		"the drive leaves again": {"d", "", usedAs(drivebay.VolumeReleasing, false), outcome{}, callNone, "", true},
		"another drive":          {"c", "", usedAs(drivebay.VolumeReleasing, false), outcome{}, callReleaseFrom, "", false},
		"missing":                {"", "", nil, outcome{}, callNone, "", false},
	} {
		f.check(t, name, c)
	}
}
