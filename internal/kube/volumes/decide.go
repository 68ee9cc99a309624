package volumes

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// call is a call of the engine.
type call uint8

const (
	callNone call = iota
	callCreate
	callExpand
	callDelete
)

// requested returns the call that an object requests, given the volume of the engine; nil: the engine does not have it.
func requested(o *v1alpha1.Volume, v *drivebay.VolumeView) call {
	switch {
	case o.Spec.Release == v1alpha1.ReleaseDelete:
		return callDelete
	case v == nil && translate.IsMade(o.Status.Phase): // nothing is ever made in the place of a volume that is missing
		return callNone
	case o.Spec.Attempt > 0 && (v == nil || isHalfMade(v) || !translate.IsMade(o.Status.Phase)):
		return callCreate
	case v != nil && uint64(max(o.Spec.Size.Required, 0)) > v.Size:
		return callExpand
	}
	return callNone
}

// isHalfMade reports whether the creation of a volume is under way or has failed.
func isHalfMade(v *drivebay.VolumeView) bool {
	return v.CSIStatus == drivebay.CSICreating || v.CSIStatus == drivebay.CSIFailed && v.Failure != nil && v.Failure.Before == drivebay.CSICreating
}

// wait returns how long the call that an object requests has to wait: 0 for a request without an answer.
// again is false if the node has answered, and only another request makes it try again. next is when the
// last failed try is to be repeated.
func wait(a translate.Asked, next, now time.Time) (after time.Duration, again bool) {
	switch {
	case !a.Answered():
		return 0, true
	case a.Final():
		return 0, false
	}
	return max(next.Sub(now), 0), true
}

// outcome is what the node knows of the request in an object.
type outcome struct {
	did call
	err error
	// listed is true if the engine knows all volumes of the node: one that it does not have is missing.
	listed bool
}

// answer returns the status of an object after a look at the engine, and after the call if there was one.
func answer(o *v1alpha1.Volume, v *drivebay.VolumeView, out outcome, now time.Time) v1alpha1.VolumeStatus {
	s := *o.Status.DeepCopy()
	due := requested(o, v)
	switch {
	case out.did != callNone:
		s.Error = translate.ErrorOf(out.err)
	case due == callNone, o.Generation != s.ObservedGeneration:
		s.Error = nil
	}
	s.ObservedGeneration = o.Generation
	if v != nil {
		translate.Observe(&s, v)
	}
	if s.Phase = phase(o, v, s.Error, out); s.Phase == v1alpha1.VolumeMissing {
		s.OperationalStatus = drivebay.Missing.String()
		s.Findings = []v1alpha1.VolumeFinding{{Severity: drivebay.SeverityInaccessible.String(), Reason: "VolumeNotFound",
			Message: "node " + o.Spec.Node + " does not find the volume: its drives were taken out, or its record was deleted. Return the drives, or delete this object if the volume is gone for good."}}
	}
	setReady(&s.Conditions, s.Phase, s.Error, o.Generation, now)
	return s
}

// phase returns the phase of an object with the last error of its request.
func phase(o *v1alpha1.Volume, v *drivebay.VolumeView, e *v1alpha1.VolumeError, out outcome) v1alpha1.VolumePhase {
	final := e != nil && !translate.Transient(e)
	switch {
	case out.did == callDelete && e == nil:
		return v1alpha1.VolumeReleased
	case v == nil && o.Spec.Release == v1alpha1.ReleaseDelete && o.Status.Phase == v1alpha1.VolumeReleased:
		return v1alpha1.VolumeReleased
	case v == nil && o.Spec.Release == v1alpha1.ReleaseDelete:
		return v1alpha1.VolumeReleasing
	case v == nil && (translate.IsMade(o.Status.Phase) || o.Spec.Attempt == 0):
		if !out.listed && o.Status.Phase != "" {
			return o.Status.Phase
		}
		return v1alpha1.VolumeMissing
	case v == nil && final:
		return v1alpha1.VolumeRefused
	case v == nil:
		return v1alpha1.VolumePending
	case v.CSIStatus == drivebay.CSIRemoving, o.Spec.Release == v1alpha1.ReleaseDelete && !final:
		return v1alpha1.VolumeReleasing
	case isHalfMade(v) && v.CSIStatus == drivebay.CSICreating:
		return v1alpha1.VolumePending
	case isHalfMade(v):
		return v1alpha1.VolumeFailed
	case o.Spec.Attempt > 0 && !translate.IsMade(o.Status.Phase) && e != nil && final && o.Spec.Release == "": // another volume has the name
		return v1alpha1.VolumeRefused
	case o.Spec.Attempt > 0 && !translate.IsMade(o.Status.Phase) && e != nil && o.Spec.Release == "": // the engine could not verify it
		return v1alpha1.VolumePending
	}
	return v1alpha1.VolumeMade
}

// setReady sets the condition Ready.
func setReady(all *[]metav1.Condition, phase v1alpha1.VolumePhase, e *v1alpha1.VolumeError, generation int64, now time.Time) {
	c := metav1.Condition{Type: v1alpha1.VolumeReady, Status: metav1.ConditionFalse, Reason: string(phase), ObservedGeneration: generation, LastTransitionTime: metav1.Time{Time: now}}
	switch {
	case phase == v1alpha1.VolumeMade:
		c.Status = metav1.ConditionTrue
	case e != nil:
		c.Reason, c.Message = e.Code, e.Message
	}
	meta.SetStatusCondition(all, c)
}

// volumeStatuses compares statuses of volumes.
var volumeStatuses = pace.Status[v1alpha1.VolumeStatus]{
	Answer: func(s *v1alpha1.VolumeStatus) any {
		if s.Phase == "" {
			return nil
		}
		return []any{s.ObservedGeneration, s.Phase}
	},
	WithoutNumbers: withoutNumbers,
}

// withoutNumbers returns a status without the texts that change while nothing happens: a finding names the used
// space.
func withoutNumbers(s *v1alpha1.VolumeStatus) *v1alpha1.VolumeStatus {
	s = s.DeepCopy()
	for i := range s.Findings {
		s.Findings[i].Message = ""
	}
	return s
}

// abandoned reports whether the object of a volume that the engine does not have is to be deleted: an operator
// has deleted the volume on the node. deleted is true if the daemon has seen that.
func abandoned(o *v1alpha1.Volume, deleted, listed bool) bool {
	return listed && o.Spec.Release == "" && translate.IsMade(o.Status.Phase) && (deleted || o.Status.CSIStatus == drivebay.CSIRemoving.String())
}

// wants reports whether the engine's volume is to have an object. One that is being made or removed gets its
// first object when it is there.
func wants(v *drivebay.VolumeView) bool {
	return v.CSIStatus != drivebay.CSICreating && v.CSIStatus != drivebay.CSIRemoving && v.CSIStatus != drivebay.CSIRemoved
}
