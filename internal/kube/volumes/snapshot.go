package volumes

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// requestedSnapshot returns the call that the object of a snapshot requests, given the snapshot of the engine; nil: the
// engine does not have it, or is making it.
func requestedSnapshot(o *v1alpha1.Snapshot, v *drivebay.VolumeSnapshot) call {
	made := translate.IsMade(o.Status.Phase)
	switch {
	case v == nil && snapshotUnwiped(o):
		return callNone
	case o.Spec.Release == v1alpha1.ReleaseDelete:
		return callDelete
	case o.Spec.Attempt > 0 && !made: // nothing is ever made in the place of a snapshot that is missing
		return callCreate
	}
	return callNone
}

// snapshotUnwiped reports whether an object requests the deletion of a snapshot that its node does not find: see unwiped. A person
// gives it up by deleting the object.
func snapshotUnwiped(o *v1alpha1.Snapshot) bool {
	return o.Spec.Release == v1alpha1.ReleaseDelete && o.Status.Phase == v1alpha1.VolumeMissing && o.Spec.Attempt > 0
}

// notRemoved is the answer to the deletion of a snapshot that its node does not find.
func notRemoved(o *v1alpha1.Snapshot) error {
	return fmt.Errorf("snapshot %s: delete: %w: node %s does not find it, so it is not removed: return its drive; if that is gone for good, delete this object, and then the snapshot again",
		o.Name, drivebay.ErrUnavailable, o.Spec.Node)
}

// answerSnapshot returns the status of the object of a snapshot after a look at the engine, and after the call if there
// was one.
func answerSnapshot(o *v1alpha1.Snapshot, v *drivebay.VolumeSnapshot, out outcome, now time.Time) v1alpha1.SnapshotStatus {
	s := *o.Status.DeepCopy()
	switch {
	case out.did != callNone:
		s.Error = translate.ErrorOf(out.err)
	case requestedSnapshot(o, v) == callNone, o.Generation != s.ObservedGeneration:
		s.Error = nil
	}
	if v == nil && snapshotUnwiped(o) {
		s.Error = translate.ErrorOf(notRemoved(o))
	}
	s.ObservedGeneration = o.Generation
	if v != nil {
		translate.ObserveSnapshot(&s, v)
	}
	s.Phase = snapshotPhase(o, v, s.Error, out)
	switch {
	case v != nil || !translate.IsMade(s.Phase): // ObserveSnapshot has said whether its drive is there
	case out.listed:
		s.Unavailable = "node " + o.Spec.Node + " does not find the snapshot: its drive was taken out, or its record was deleted"
	default:
		s.Unavailable = "node " + o.Spec.Node + " has no record of the snapshot, and has not read all of its drives"
	}
	setReady(&s.Conditions, s.Phase, s.Error, o.Generation, now)
	return s
}

// snapshotPhase returns the phase of the object of a snapshot with the last error of its request.
func snapshotPhase(o *v1alpha1.Snapshot, v *drivebay.VolumeSnapshot, e *v1alpha1.VolumeError, out outcome) v1alpha1.VolumePhase {
	final, release := e != nil && !translate.Transient(e), o.Spec.Release == v1alpha1.ReleaseDelete
	made := translate.IsMade(o.Status.Phase)
	switch {
	case v == nil && (out.restored || snapshotUnwiped(o)):
		return v1alpha1.VolumeMissing
	case out.did == callDelete && e == nil, release && v == nil && o.Status.Phase == v1alpha1.VolumeReleased:
		return v1alpha1.VolumeReleased
	case release && (v == nil || !final):
		return v1alpha1.VolumeReleasing
	case v == nil && (made || o.Spec.Attempt == 0):
		if !out.listed && o.Status.Phase != "" {
			return o.Status.Phase
		}
		return v1alpha1.VolumeMissing
	case !made && final && !release: // nothing was made, or another snapshot has the name
		return v1alpha1.VolumeRefused
	case v == nil, !made && e != nil && !release:
		return v1alpha1.VolumePending
	}
	return v1alpha1.VolumeMade
}

// snapshotStatuses compares statuses of snapshots.
var snapshotStatuses = pace.Status[v1alpha1.SnapshotStatus]{
	Answer: func(s *v1alpha1.SnapshotStatus) any {
		if s.Phase == "" {
			return nil
		}
		return []any{s.ObservedGeneration, s.Phase}
	},
	WithoutNumbers: func(s *v1alpha1.SnapshotStatus) *v1alpha1.SnapshotStatus { return s },
}
