package volumes

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onceCase is an object with a request that names the drive "d", and what the node makes of it.
type onceCase struct {
	answered string // in the status
	release  string
	v        *drivebay.VolumeView
	out      outcome
	call     call
	reason   string
	final    bool // the node has answered
}

// onceField is a field of a spec on which the node acts once.
type onceField struct {
	call            call
	condition, done string
	spec            func(*v1alpha1.VolumeSpec) *string
	status          func(*v1alpha1.VolumeStatus) *string
}

func (f onceField) check(t *testing.T, name string, c onceCase) {
	t.Helper()
	o := object(1, v1alpha1.VolumeMade, "")
	*f.spec(&o.Spec), *f.status(&o.Status), o.Spec.Release = "d", c.answered, c.release
	if got := requested(o, c.v); got != c.call {
		t.Errorf("%s: call %d, want %d", name, got, c.call)
	}
	c.out.listed = true
	s := answer(o, c.v, c.out, time.Unix(1000, 0))
	if status, reason := conditionOf(&s, f.condition); reason != c.reason || (status == metav1.ConditionTrue) != (reason == f.done) || s.Error != nil {
		t.Errorf("%s: %s %s, error %v", name, status, reason, s.Error)
	}
	if (*f.status(&s) == "d") != c.final {
		t.Errorf("%s: answered %q", name, *f.status(&s))
	}
	o.Status = s
	if c.final && requested(o, usedAs(drivebay.VolumeReleasing, false)) == f.call {
		t.Errorf("%s: the call is made again", name)
	}
	*f.spec(&o.Spec) = ""
	if s := answer(o, c.v, outcome{listed: true}, time.Unix(2000, 0)); *f.status(&s) != "" || meta.FindStatusCondition(s.Conditions, f.condition) != nil {
		t.Errorf("%s: the answer stays without the field", name)
	}
}

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
