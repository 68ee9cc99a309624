package volumes

import (
	"time"

	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasonInUse is the reason of a request that waits until no pod uses the volume. A refusal has the code of its error.
const reasonInUse = "InUse"

// reasonNotRequested is the reason of a request that the object had before its first status: the status had the answer.
const reasonNotRequested = "SetBeforeFirstStatus"

const setTooEarly = "the field was set before the node wrote the first status, as a restored backup has it: remove the field and set it again"

// once is a request of a person that names a drive of the volume, and that the node acts on once: a drive that leaves again
// later does not take the data with it.
type once struct {
	drive     string
	answered  *string // in the status
	condition string  // type of the condition that has the answer
	did       bool    // the node has acted now
	waits     string  // why it has to wait; "": it does not
	again     bool    // a volume that is busy is tried again
	done      string  // reason when it is done
	text      string  // message when it is done
}

// set writes the answer to the request into a status. An error that ends by itself is shown, and the call made again.
func (r once) set(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, e *v1alpha1.VolumeError, now time.Time) {
	if r.drive == "" {
		*r.answered = ""
		meta.RemoveStatusCondition(&s.Conditions, r.condition)
		return
	}
	c := metav1.Condition{Type: r.condition, Status: metav1.ConditionFalse, ObservedGeneration: o.Generation, LastTransitionTime: metav1.Time{Time: now}}
	switch {
	case o.Status.Phase == "" && *r.answered != r.drive:
		*r.answered, c.Reason = r.drive, reasonNotRequested
		c.Message = setTooEarly
	case !r.did && (*r.answered == r.drive || r.waits == ""):
		return
	case !r.did:
		c.Reason, c.Message = reasonInUse, r.waits
	case e == nil:
		*r.answered, c.Status, c.Reason, c.Message = r.drive, metav1.ConditionTrue, r.done, r.text
	case translate.Transient(e), r.again && e.Code == "Busy":
		c.Reason, c.Message = e.Code, e.Message
	default:
		*r.answered, c.Reason, c.Message = r.drive, e.Code, e.Message
	}
	meta.SetStatusCondition(&s.Conditions, c)
}
