package volumes

import (
	"fmt"
	"strings"
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
	callHeal
	callMoveFirst
	callReleaseFrom
	callAdopt
	callForget
	callForgetLost
	callTask
)

// requested returns the call that an object requests, given the volume of the engine; nil: the engine does not have it.
func requested(o *v1alpha1.Volume, v *drivebay.VolumeView) call {
	switch {
	case v != nil && forgets(o, v): // a deletion waits for the drive, which does not come
		return callForgetLost
	case contradicts(o, v): // what is requested of one volume is done to no other: a person decides
		return callNone
	case v == nil && unwiped(o, o.Status.Forget):
		return callNone
	case o.Spec.Release == v1alpha1.ReleaseDelete:
		return callDelete
	case v != nil && isFound(v):
		if o.Spec.Adopt == o.Spec.Node && o.Status.Adopt != o.Spec.Adopt {
			return callAdopt
		}
		return callNone
	case v != nil && givesUp(o):
		return callForget
	case v == nil && (wasThere(o) || givenUp(o)): // nothing is ever made in the place of a volume that is missing
		return callNone
	case o.Spec.Attempt > 0 && (!wasThere(o) || isHalfMade(v)):
		return callCreate
	case v != nil && hasTask(o):
		return callTask
	case v != nil && o.Spec.Heal != "" && (o.Status.Healing == nil || o.Status.Healing.Request != o.Spec.Heal):
		return callHeal
	case v != nil && movesFirst(o, v):
		return callMoveFirst
	case v != nil && releasesFrom(o, v):
		return callReleaseFrom
	case v != nil && uint64(max(o.Spec.Size.Required, 0)) > v.Size:
		return callExpand
	}
	return callNone
}

// unwiped reports whether an object requests the deletion of a volume that its node does not find, and that was not given up:
// the records of the node were lost while the drive was away, and its data are on the drive. forgotten is status.forget.
func unwiped(o *v1alpha1.Volume, forgotten string) bool {
	return o.Spec.Release == v1alpha1.ReleaseDelete && o.Status.Phase == v1alpha1.VolumeMissing && wasMade(o) && (forgotten == "" || forgotten != o.Spec.Forget)
}

// wasThere reports whether the node has had the volume, or has found it.
func wasThere(o *v1alpha1.Volume) bool {
	return translate.WasThere(o.Status.Phase)
}

// movesFirst reports whether spec.moveBeforeUse requests something else of a volume than what counts on its node. It
// requests nothing while no drive of the volume has to leave.
func movesFirst(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	want := o.Spec.MoveBeforeUse
	return want != nil && *want != v.MoveBeforeUse && (!*want || v.Usage == drivebay.VolumeReleasing)
}

// givenUp reports whether another node is to adopt the volume.
func givenUp(o *v1alpha1.Volume) bool { return o.Spec.Adopt != "" && o.Spec.Adopt != o.Spec.Node }

// givesUp reports whether the node is to give up its record for another node. It has answered each request once: one that was refused
// while the drives were there does not take effect when they are pulled, nor does one of an object that lost its status.
func givesUp(o *v1alpha1.Volume) bool {
	return givenUp(o) && o.Status.Adopt != o.Spec.Adopt && o.Status.Phase != ""
}

// setAdopted writes the answer to spec.adopt into a status. A volume in the records of its node has been adopted. A request for a volume
// that is not there waits for its drives, and so does an error that ends by itself.
func setAdopted(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, v *drivebay.VolumeView, out outcome, now time.Time) {
	e := translate.ErrorOf(out.err)
	recorded := v != nil && !isFound(v)
	switch {
	case o.Spec.Adopt == "":
		s.Adopt = ""
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.VolumeGivenUp)
	case out.did == callAdopt || out.did == callForget:
		if e == nil || !translate.Transient(e) && e.Code != "Busy" {
			s.Adopt = o.Spec.Adopt
		}
	case recorded && !givenUp(o):
		s.Adopt = o.Spec.Adopt
	case recorded && o.Status.Phase == "":
		s.Adopt = o.Spec.Adopt
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.VolumeGivenUp, Status: metav1.ConditionFalse, ObservedGeneration: o.Generation, LastTransitionTime: metav1.Time{Time: now},
			Reason: reasonNotRequested, Message: setTooEarly})
	}
}

// notAdopted reports whether spec.adopt was answered, and the volume is where it was: the error stays until the spec changes.
func notAdopted(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, v *drivebay.VolumeView) bool {
	return v != nil && o.Spec.Adopt != "" && s.Adopt == o.Spec.Adopt && isFound(v) == !givenUp(o)
}

// isFound reports whether a volume is on the drives and in no record: each record has a state.
func isFound(v *drivebay.VolumeView) bool { return v.CSIStatus == drivebay.CSIUnknown }

// viewOf returns a volume that is on the drives and in no record. Its condition is why no record can be made of it.
func viewOf(f *drivebay.FoundVolume) *drivebay.VolumeView {
	v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: f.ID, Name: f.Name, Size: f.Size, Location: drivebay.Location{Kind: f.Kind, Drives: f.Drives}}}
	if f.Issue != "" {
		v.Condition = drivebay.Condition{{Severity: drivebay.SeverityInaccessible, Reason: "VolumeNotFound", Message: f.Issue + ": " + f.Next}}
	}
	return v
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
	return v != nil && v.Name == "" && o.Spec.Name != "" && drivebay.VolumeID(o.Spec.Name) == o.Name && !isFound(v) && wasThere(o)
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

// reasonAnotherInstance is the reason of the finding of a volume that contradicts its object.
const reasonAnotherInstance = "AnotherInstance"

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
	// healed is what Heal has reported.
	healed drivebay.HealReport
	// task is the answer to a task.
	task v1alpha1.VolumeTaskAnswer
	// listed is true if the engine knows all volumes of the node: one that it does not have is missing.
	listed bool
	// restored is true for an object that is from a backup: what it has is missing, and not yet to be made.
	restored bool
}

// answer returns the status of an object after a look at the engine, and after the call if there was one.
func answer(o *v1alpha1.Volume, v *drivebay.VolumeView, out outcome, now time.Time) v1alpha1.VolumeStatus {
	s := *o.Status.DeepCopy()
	due := requested(o, v)
	setHealed(o, &s, out, now)
	setReleasedFrom(o, &s, v, out, now)
	setForgotten(o, &s, v, out, now)
	setTask(o, &s, out)
	setAdopted(o, &s, v, out, now)
	switch {
	case out.did == callHeal || out.did == callReleaseFrom || out.did == callForgetLost || out.did == callTask: // each has an answer of its own
	case out.did != callNone:
		s.Error = translate.ErrorOf(out.err)
	case notAdopted(o, &s, v) && o.Generation == s.ObservedGeneration:
	case due == callNone, o.Generation != s.ObservedGeneration:
		s.Error = nil
	}
	if contradicts(o, v) && o.Spec.Release == v1alpha1.ReleaseDelete {
		s.Error = translate.ErrorOf(fmt.Errorf("volume %s: delete: %w: the drives have another volume with this id than the node had before (finding %s): find out which of the two is the volume, and delete the Volume object to accept what is on the drives; then delete the volume again",
			o.Name, drivebay.ErrRefused, reasonAnotherInstance))
	}
	if v == nil && unwiped(o, s.Forget) {
		s.Error = translate.ErrorOf(notWiped(o, s.Location.Drives))
	}
	s.ObservedGeneration = o.Generation
	switch {
	case v != nil && !isFound(v):
		translate.Observe(&s, v)
	case v != nil && s.Capacity == 0: // not the size of the volume before: a found volume may have a header
		translate.Observe(&s, v)
	}
	if contradicts(o, v) { // what the object remembers stays, so that it contradicts tomorrow as well
		found := s.Location
		s.Location = *o.Status.Location.DeepCopy()
		s.Findings = append([]v1alpha1.VolumeFinding{{Severity: drivebay.SeverityDegraded.String(), Reason: reasonAnotherInstance,
			Message: "the drives have another volume with this id than the node had before (" + instanceOf(found) + " on " + strings.Join(found.Drives, ", ") + ", before " + instanceOf(s.Location) +
				"): its name is not restored. Find out which of the two is the volume, and delete this object to accept what is on the drives."}}, s.Findings...)
	}
	why, status := "", drivebay.Missing
	switch s.Phase = phase(o, v, s.Error, s.Forget, out); s.Phase {
	case v1alpha1.VolumeMissing:
		why = "node " + o.Spec.Node + " does not find the volume: its drives were taken out, or its record was deleted. Return the drives, or delete this object if the volume is gone for good. If another machine has the drives, spec.adopt can name it."
	case v1alpha1.VolumeFound:
		if v != nil && len(v.Condition) > 0 {
			why = "the volume is on drives of node " + o.Spec.Node + ", and no record can be made of it: " + v.Condition[0].Message + "."
			break
		}
		why = "the volume is on drives of node " + o.Spec.Node + " that are not claimed, and in none of its records. Set spec.adopt to \"" + o.Spec.Node + "\", or claim the drives."
	case v1alpha1.VolumeMade, v1alpha1.VolumeReleasing:
		if v == nil && !out.listed { // what the node saw of it before says nothing of today
			status = drivebay.OperationalUnknown
			why = "node " + o.Spec.Node + " has no record of the volume, and has not read all of its drives: whether the volume works is not known. `drivebay status` on the node names the drives."
		}
	}
	if why != "" {
		s.OperationalStatus = status.String()
		s.Findings = []v1alpha1.VolumeFinding{{Severity: drivebay.SeverityInaccessible.String(), Reason: "VolumeNotFound", Message: why}}
	}
	setReady(&s.Conditions, s.Phase, s.Error, o.Generation, now)
	return s
}

// phase returns the phase of an object with the last error of its request.
func phase(o *v1alpha1.Volume, v *drivebay.VolumeView, e *v1alpha1.VolumeError, forgotten string, out outcome) v1alpha1.VolumePhase {
	final := e != nil && !translate.Transient(e)
	switch {
	case out.did == callDelete && e == nil:
		return v1alpha1.VolumeReleased
	case v == nil && givenUp(o) && out.listed && o.Spec.Release == "":
		return v1alpha1.VolumeMoved
	case v != nil && isFound(v) && (o.Spec.Release == "" || final): // the engine refuses to delete it
		return v1alpha1.VolumeFound
	case v == nil && (out.restored || unwiped(o, forgotten)):
		return v1alpha1.VolumeMissing
	case v == nil && o.Spec.Release == v1alpha1.ReleaseDelete && o.Status.Phase == v1alpha1.VolumeReleased:
		return v1alpha1.VolumeReleased
	case v == nil && o.Spec.Release == v1alpha1.ReleaseDelete:
		return v1alpha1.VolumeReleasing
	case v == nil && (wasThere(o) || o.Spec.Attempt == 0):
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
	case o.Spec.Attempt > 0 && !wasThere(o) && e != nil && final && o.Spec.Release == "": // another volume has the name
		return v1alpha1.VolumeRefused
	case o.Spec.Attempt > 0 && !wasThere(o) && e != nil && o.Spec.Release == "": // the engine could not verify it
		return v1alpha1.VolumePending
	}
	return v1alpha1.VolumeMade
}

// setHealed writes the result of a repair into a status. An error that ends by itself is shown, and the repair tried again.
func setHealed(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, out outcome, now time.Time) {
	if o.Spec.Heal == "" {
		s.Healing = nil
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.VolumeHealed)
		return
	}
	if out.did != callHeal {
		return
	}
	c := metav1.Condition{Type: v1alpha1.VolumeHealed, Status: metav1.ConditionTrue, Reason: translate.HealNothing, ObservedGeneration: o.Generation, LastTransitionTime: metav1.Time{Time: now}}
	e := translate.ErrorOf(out.err)
	if e == nil || !translate.Transient(e) {
		s.Healing = translate.Healing(o.Spec.Heal, &out.healed)
	}
	for _, step := range out.healed.Steps {
		if c.Reason = translate.HealRepaired; step.Failed != "" {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, translate.HealFailed, drivebay.PlainText(step.Repair+": "+step.Failed, 1024)
			break
		}
	}
	switch left := out.healed.Remaining; {
	case e != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, e.Code, e.Message
	case len(left) > 0 && c.Status == metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, translate.HealAbnormal, drivebay.PlainText(left[0].Reason+": "+left[0].Message, 1024)
	}
	meta.SetStatusCondition(&s.Conditions, c)
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
		healed := ""
		if s.Healing != nil {
			healed = s.Healing.Request
		}
		task := ""
		if s.Task != nil {
			task = s.Task.Request
		}
		return []any{s.ObservedGeneration, s.Phase, healed, s.ReleaseFrom, s.Forget, s.Adopt, task, s.Location}
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
// has deleted the volume on the node, or it was only ever found on a drive that was taken out again. deleted is true if the
// daemon has seen the deletion.
func abandoned(o *v1alpha1.Volume, deleted, listed bool) bool {
	switch {
	case !listed || o.Spec.Release != "":
		return false
	case o.Status.Phase == v1alpha1.VolumeFound:
		return !wasMade(o)
	}
	return translate.IsMade(o.Status.Phase) && (deleted || o.Status.CSIStatus == drivebay.CSIRemoving.String())
}

// wasMade reports whether the object is that of a volume that was made once. It alone has the name and the class of the volume
// then, which a claim may use. The object of a volume that was only found has neither a class nor a time of creation.
func wasMade(o *v1alpha1.Volume) bool {
	return o.Spec.Attempt > 0 || o.Spec.Class != nil || !o.Status.Created.IsZero()
}

// flaps reports whether the object of a volume comes and goes with its drive: the volume is only found.
func flaps(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	if v != nil {
		return isFound(v)
	}
	return o.Status.Phase == v1alpha1.VolumeFound
}

// wants reports whether the engine's volume is to have an object. One that is being made or removed gets its
// first object when it is there.
func wants(v *drivebay.VolumeView) bool {
	return v.CSIStatus != drivebay.CSICreating && v.CSIStatus != drivebay.CSIRemoving && v.CSIStatus != drivebay.CSIRemoved
}
