package volumes

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the condition ReleasedFromDrive. A refusal has the code of its error.
const (
	reasonReleased = "Released"
	reasonInUse    = "InUse"
)

// releasesFrom reports whether a volume is to be released from its drive. A volume in use waits until it is not: the
// engine would refuse it, and a refusal is an answer.
func releasesFrom(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	return o.Spec.ReleaseFrom != "" && o.Status.ReleaseFrom != o.Spec.ReleaseFrom && len(v.Publications) == 0
}

// setReleasedFrom writes the answer to spec.releaseFrom into a status. An error that ends by itself is shown, and the
// call made again.
func setReleasedFrom(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, v *drivebay.VolumeView, out outcome, now time.Time) {
	drive := o.Spec.ReleaseFrom
	if drive == "" {
		s.ReleaseFrom = ""
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.VolumeReleasedFrom)
		return
	}
	c := metav1.Condition{Type: v1alpha1.VolumeReleasedFrom, Status: metav1.ConditionFalse, ObservedGeneration: o.Generation, LastTransitionTime: metav1.Time{Time: now}}
	e := translate.ErrorOf(out.err)
	switch {
	case out.did != callReleaseFrom && (s.ReleaseFrom == drive || v == nil || len(v.Publications) == 0):
		return
	case out.did != callReleaseFrom:
		c.Reason, c.Message = reasonInUse, "the volume is released as soon as no pod uses it"
	case e == nil:
		s.ReleaseFrom, c.Status, c.Reason, c.Message = drive, metav1.ConditionTrue, reasonReleased, "drive "+drive+" leaves with the data of the volume"
	case translate.Transient(e):
		c.Reason, c.Message = e.Code, e.Message
	default:
		s.ReleaseFrom, c.Reason, c.Message = drive, e.Code, e.Message
	}
	meta.SetStatusCondition(&s.Conditions, c)
}
