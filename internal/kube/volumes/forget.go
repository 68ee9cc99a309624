package volumes

import (
	"errors"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// forgets reports whether the node is to give up its record of a volume whose drive is gone for good.
func forgets(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	return o.Spec.Forget != "" && o.Status.Forget != o.Spec.Forget && !isFound(v)
}

// setForgotten writes the answer to spec.forget into a status. A volume in use waits until it is not: the engine knows
// which of its mounts are gone with the drive. A volume in no record has been forgotten: the status could not be written
// then, or a person was faster on the node.
func setForgotten(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, v *drivebay.VolumeView, out outcome, now time.Time) {
	r := once{drive: o.Spec.Forget, answered: &s.Forget, condition: v1alpha1.VolumeForgotten, done: "Forgotten", text: "the node has no record of the volume any more"}
	var e *v1alpha1.VolumeError
	switch gone := v == nil && out.listed || v != nil && isFound(v); {
	case out.did != callForgetLost:
		r.did = gone && s.Forget != r.drive
	case errors.Is(out.err, drivebay.ErrBusy):
		r.waits = "the volume is forgotten as soon as no pod uses it: " + translate.ErrorOf(out.err).Message
	default:
		r.did, e = true, translate.ErrorOf(out.err)
	}
	r.set(o, s, e, now)
}
