package volumes

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// forgets reports whether the node is to give up its record of a volume whose drive is gone for good. The engine knows which
// mounts are gone with the drive: it is asked again while a pod uses the volume.
func forgets(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	return o.Spec.Forget != "" && o.Status.Forget != o.Spec.Forget && !isFound(v) && o.Status.Phase != ""
}

// setForgotten writes the answer to spec.forget into a status. A volume in no record has been forgotten: the status could
// not be written then, or a person was faster on the node.
func setForgotten(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, v *drivebay.VolumeView, out outcome, now time.Time) {
	r := once{drive: o.Spec.Forget, answered: &s.Forget, condition: v1alpha1.VolumeForgotten, did: out.did == callForgetLost, again: true,
		done: "Forgotten", text: "the node has no record of the volume any more"}
	e := translate.ErrorOf(out.err)
	if gone := v == nil && out.listed || v != nil && isFound(v); !r.did && gone {
		r.did, e = s.Forget != r.drive, nil
	}
	r.set(o, s, e, now)
}
