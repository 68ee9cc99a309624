package cluster

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// TestHealed: the result of a repair is that of this request, not of the one before. A refusal of the node is an error, also if the
// volume is abnormal.
func TestHealed(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason string, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.VolumeHealed, Status: status, Reason: reason, Message: "text", ObservedGeneration: generation}}
	}
	w, abnormal := wished{"now", 5}, []v1alpha1.VolumeFinding{{Severity: "INACCESSIBLE", Reason: "NotMounted", Message: "it is not mounted"}}
	for name, c := range map[string]struct {
		status v1alpha1.VolumeStatus
		ended  bool
		steps  int
		err    error
	}{
		"no answer":      {v1alpha1.VolumeStatus{}, false, 0, nil},
		"an older one":   {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionTrue, "Repaired", 4), Healing: &v1alpha1.VolumeHealing{Request: "before"}}, false, 0, nil},
		"it tries again": {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionFalse, "Unavailable", 5), Healing: &v1alpha1.VolumeHealing{Request: "before"}}, false, 0, nil},
		"nothing":        {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionTrue, "NothingToRepair", 5), Healing: &v1alpha1.VolumeHealing{Request: "now"}}, true, 0, nil},
		"repaired": {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionTrue, "Repaired", 6),
			Healing: &v1alpha1.VolumeHealing{Request: "now", Repairs: []v1alpha1.VolumeRepair{{Repair: "Remount", Done: "mounted"}}}}, true, 1, nil},
		"refused, still abnormal": {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionFalse, "Secret", 5), Healing: &v1alpha1.VolumeHealing{Request: "now"}, Findings: abnormal}, true, 0, drivebay.ErrSecret},
		"failed": {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionFalse, "NotRepaired", 5), Findings: abnormal,
			Healing: &v1alpha1.VolumeHealing{Request: "now", Repairs: []v1alpha1.VolumeRepair{{Repair: "Remount", Failed: "busy"}}}}, true, 1, nil},
		"still abnormal": {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionFalse, "Abnormal", 5), Healing: &v1alpha1.VolumeHealing{Request: "now"}, Findings: abnormal}, true, 0, nil},
		"refused":        {v1alpha1.VolumeStatus{Conditions: condition(metav1.ConditionFalse, "Secret", 5), Healing: &v1alpha1.VolumeHealing{Request: "now"}}, true, 0, drivebay.ErrSecret},
	} {
		r, ended, err := healed(&v1alpha1.Volume{Status: c.status}, w)
		if ended != c.ended || ended && (len(r.Steps) != c.steps || !errors.Is(err, c.err) || (err != nil) != (c.err != nil)) {
			t.Errorf("%s: %+v %v %v", name, r, ended, err)
		}
	}
}
