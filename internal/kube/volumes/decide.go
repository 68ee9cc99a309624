package volumes

import (
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	"k8s.io/apimachinery/pkg/api/equality"
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
	case v == nil && wasMade(o): // nothing is ever made in the place of a volume that is missing
		return callNone
	case o.Spec.Attempt > 0 && (v == nil || isHalfMade(v) || !wasMade(o)):
		return callCreate
	case v != nil && uint64(max(o.Spec.Size.Required, 0)) > v.Size:
		return callExpand
	}
	return callNone
}

// wasMade reports whether the node has said before that the volume was made.
func wasMade(o *v1alpha1.Volume) bool {
	switch o.Status.Phase {
	case v1alpha1.VolumeMade, v1alpha1.VolumeMissing, v1alpha1.VolumeReleasing:
		return true
	}
	return false
}

// instanceOf returns what tells a volume apart from others that had its id: the GUID of its partition, or the tag of its
// logical volume.
func instanceOf(l v1alpha1.VolumeLocation) string {
	if l.VG != "" {
		return l.Instance
	}
	return strings.ToLower(l.Partition)
}

// nameless reports whether a volume was found on its drives without its name, which the object has.
func nameless(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	return v != nil && v.Name == "" && o.Spec.Name != "" && drivebay.VolumeID(o.Spec.Name) == o.Name && wasMade(o)
}

// contradicts reports whether a volume without its name is not the one that the object shows.
func contradicts(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	if !nameless(o, v) {
		return false
	}
	var found v1alpha1.VolumeStatus
	translate.Observe(&found, v)
	was, is := instanceOf(o.Status.Location), instanceOf(found.Location)
	return was != "" && was != is || o.Spec.Mode != "" && v.Mode != drivebay.ModeUnknown && (o.Spec.Mode == v1alpha1.ModeFilesystem) != v.HasFilesystem()
}

// remembered returns what the object knows of a volume that was found without its name: the records of the node were
// lost, and the drives do not have all of it.
func remembered(o *v1alpha1.Volume, v *drivebay.VolumeView) (was drivebay.Volume, ok bool) {
	if !nameless(o, v) || contradicts(o, v) || instanceOf(o.Status.Location) == "" || v.Undecided() != "" {
		return was, false
	}
	return translate.View(o).Volume, true
}

// isHalfMade reports whether the creation of a volume is under way or has failed.
func isHalfMade(v *drivebay.VolumeView) bool {
	return v.CSIStatus == drivebay.CSICreating || v.CSIStatus == drivebay.CSIFailed && v.Failure != nil && v.Failure.Before == drivebay.CSICreating
}

// wait returns how long the call that an object requests has to wait: 0 for a request without an answer.
// again is false if the node has answered, and only another request makes it try again. next is when the
// last failed try is to be repeated.
func wait(o *v1alpha1.Volume, next, now time.Time) (after time.Duration, again bool) {
	e := o.Status.Error
	switch {
	case o.Generation != o.Status.ObservedGeneration:
		return 0, true
	case e != nil && !translate.Transient(e):
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
		if contradicts(o, v) { // what the object remembers stays, so that it contradicts tomorrow as well
			found := s.Location
			s.Location = *o.Status.Location.DeepCopy()
			s.Findings = append([]v1alpha1.VolumeFinding{{Severity: drivebay.SeverityDegraded.String(), Reason: "AnotherInstance",
				Message: "the drives have another volume with this id than the node had before (" + instanceOf(found) + " on " + strings.Join(found.Drives, ", ") + ", before " + instanceOf(s.Location) +
					"): its name is not restored. Find out which of the two is the volume, and delete this object to accept what is on the drives."}}, s.Findings...)
		}
	}
	if s.Phase = phase(o, v, s.Error, out.listed); s.Phase == v1alpha1.VolumeMissing {
		s.OperationalStatus = drivebay.Missing.String()
		s.Findings = []v1alpha1.VolumeFinding{{Severity: drivebay.SeverityInaccessible.String(), Reason: "VolumeNotFound",
			Message: "node " + o.Spec.Node + " does not find the volume: its drives were taken out, or its record was deleted. Return the drives, or delete this object if the volume is gone for good."}}
	}
	s.Conditions = ready(&s, o.Generation, now)
	return s
}

// phase returns the phase of an object with the last error of its request.
func phase(o *v1alpha1.Volume, v *drivebay.VolumeView, e *v1alpha1.VolumeError, listed bool) v1alpha1.VolumePhase {
	final := e != nil && !translate.Transient(e)
	switch {
	case v == nil && o.Spec.Release == v1alpha1.ReleaseDelete:
		return v1alpha1.VolumeReleasing
	case v == nil && (wasMade(o) || o.Spec.Attempt == 0):
		if !listed && o.Status.Phase != "" {
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
	case o.Spec.Attempt > 0 && !wasMade(o) && e != nil && final && o.Spec.Release == "": // another volume has the name
		return v1alpha1.VolumeRefused
	case o.Spec.Attempt > 0 && !wasMade(o) && e != nil && o.Spec.Release == "": // the engine could not verify it
		return v1alpha1.VolumePending
	}
	return v1alpha1.VolumeMade
}

// ready returns the conditions of a status.
func ready(s *v1alpha1.VolumeStatus, generation int64, now time.Time) []metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.VolumeReady, Status: metav1.ConditionFalse, Reason: string(s.Phase), ObservedGeneration: generation, LastTransitionTime: metav1.Time{Time: now}}
	switch {
	case s.Phase == v1alpha1.VolumeMade:
		c.Status = metav1.ConditionTrue
	case s.Error != nil:
		c.Reason, c.Message = s.Error.Code, s.Error.Message
	}
	conditions := s.Conditions
	meta.SetStatusCondition(&conditions, c)
	return conditions
}

// urgency returns how soon a status has to be written in place of another.
func urgency(was, want *v1alpha1.VolumeStatus) pace.Urgency {
	switch {
	case was.Phase == "":
		return pace.Now
	case equality.Semantic.DeepEqual(was, want):
		return pace.None
	case was.ObservedGeneration != want.ObservedGeneration || was.Phase != want.Phase:
		return pace.Now
	case equality.Semantic.DeepEqual(withoutNumbers(was), withoutNumbers(want)):
		return pace.Minor
	}
	return pace.Major
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
	return listed && o.Spec.Release == "" && wasMade(o) && (deleted || o.Status.CSIStatus == drivebay.CSIRemoving.String())
}

// wants reports whether the engine's volume is to have an object. One that is being made or removed gets its
// first object when it is there.
func wants(v *drivebay.VolumeView) bool {
	return v.CSIStatus != drivebay.CSICreating && v.CSIStatus != drivebay.CSIRemoving && v.CSIStatus != drivebay.CSIRemoved
}
