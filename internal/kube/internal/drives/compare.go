package drives

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
)

// complete adds to an observed status what answers the spec: the requests, the generation and the conditions.
func complete(want *v1alpha1.DriveStatus, o *v1alpha1.Drive, p plan, now time.Time) {
	status, reason, message, settled := p.condition()
	want.Requests, want.ObservedGeneration = p.requests, o.Status.ObservedGeneration
	if settled {
		want.ObservedGeneration = o.Generation
	}
	for _, c := range o.Status.Conditions {
		want.Conditions = append(want.Conditions, *c.DeepCopy())
	}
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&want.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: want.ObservedGeneration, LastTransitionTime: second(now)})
	}
	set(v1alpha1.DriveSpecApplied, status, reason, message)
	healthy, why := health(want)
	set(v1alpha1.DriveHealthy, healthy, why, "")
}

// reasonText matches what the API server takes as the reason of a condition.
var reasonText = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func health(s *v1alpha1.DriveStatus) (status metav1.ConditionStatus, reason string) {
	switch s.Health {
	case drivebay.HealthGood.String():
		return metav1.ConditionTrue, "Good"
	case drivebay.HealthUnknown.String():
		status, reason = metav1.ConditionUnknown, "Unknown"
	default:
		status, reason = metav1.ConditionFalse, "Finding"
	}
	if len(s.Findings) > 0 && reasonText.MatchString(s.Findings[0].Code) {
		reason = s.Findings[0].Code
	}
	return status, reason
}

// statuses compares statuses.
var statuses = pace.Status[v1alpha1.DriveStatus]{
	Answer: func(s *v1alpha1.DriveStatus) any {
		if s.Node == "" {
			return nil
		}
		return []any{s.ObservedGeneration, s.Requests, s.Usage}
	},
	WithoutNumbers: withoutNumbers,
}

// withoutNumbers returns a status without the texts and numbers that change while nothing happens: a finding names
// the present temperature.
func withoutNumbers(s *v1alpha1.DriveStatus) *v1alpha1.DriveStatus {
	s = s.DeepCopy()
	for i := range s.Findings {
		s.Findings[i].Text, s.Findings[i].Advice = "", ""
	}
	s.PercentUsed = nil
	return s
}
