package volumes

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// releasesFrom reports whether a volume is to be released from its drive. A volume in use waits until it is not: the
// engine would refuse it, and a refusal is an answer.
func releasesFrom(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	return o.Spec.ReleaseFrom != "" && o.Status.ReleaseFrom != o.Spec.ReleaseFrom && len(v.Publications) == 0 && o.Status.Phase != ""
}

// setReleasedFrom writes the answer to spec.releaseFrom into a status.
func setReleasedFrom(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, v *drivebay.VolumeView, out outcome, now time.Time) {
	r := once{drive: o.Spec.ReleaseFrom, answered: &s.ReleaseFrom, condition: v1alpha1.VolumeReleasedFrom, did: out.did == callReleaseFrom,
		done: "Released", text: "drive " + o.Spec.ReleaseFrom + " leaves with the data of the volume"}
	if v != nil && len(v.Publications) > 0 {
		r.waits = "the volume is released as soon as no pod uses it"
	}
	r.set(o, s, translate.ErrorOf(out.err), now)
}
