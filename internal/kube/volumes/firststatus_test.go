package volumes

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSetBeforeFirstStatus: an object that was restored from a backup has the requests of its spec and no status, which had
// the answers. They are not acted on: the drive of the volume may only be away.
func TestSetBeforeFirstStatus(t *testing.T) {
	v := usedAs(drivebay.VolumeReleasing, false)
	for condition, set := range map[string]func(*v1alpha1.VolumeSpec){
		v1alpha1.VolumeForgotten:    func(s *v1alpha1.VolumeSpec) { s.Forget = "d" },
		v1alpha1.VolumeReleasedFrom: func(s *v1alpha1.VolumeSpec) { s.ReleaseFrom = "d" },
	} {
		o := object(0, "", "")
		set(&o.Spec)
		for _, when := range []string{"before", "after"} {
			if got := requested(o, v); got != callNone {
				t.Errorf("%s, %s the first status: call %d", condition, when, got)
			}
			o.Status = answer(o, v, outcome{listed: true}, time.Unix(1000, 0))
			if status, reason := conditionOf(&o.Status, condition); status != metav1.ConditionFalse || reason != "SetBeforeFirstStatus" {
				t.Errorf("%s, %s the first status: %s %s", condition, when, status, reason)
			}
		}
	}
}
