package controller

import (
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// state is what the decisions about an object need.
type state struct {
	object *v1alpha1.Volume
	err    error // that the node has answered
}

func stateOf(o *v1alpha1.Volume) state { return state{o, translate.Error(o.Status.Error)} }

// answered reports whether the node has answered the newest spec.
func (s state) answered() bool { return s.object.Status.ObservedGeneration == s.object.Generation }

// refused reports whether the node made nothing and will not: the object can be deleted without a trace.
func (s state) refused() bool { return s.answered() && s.object.Status.Phase == v1alpha1.VolumeRefused }

// final reports whether the node has answered with an error and does not try again by itself.
func (s state) final() bool {
	return s.answered() && s.err != nil && !translate.Transient(s.object.Status.Error)
}

func (s state) released() bool { return s.object.Spec.Release == v1alpha1.ReleaseDelete }

// exists reports whether the volume was made.
func (s state) exists() bool { return exists(s.object.Status.Phase) }

func exists(p v1alpha1.VolumePhase) bool {
	switch p {
	case v1alpha1.VolumeMade, v1alpha1.VolumeReleasing, v1alpha1.VolumeMissing:
		return true
	}
	return false
}

// step is what a call does next with the object of its volume.
type step uint8

const (
	stepWait     step = iota // for the node, or for the object to go
	stepDone                 // the object is as requested
	stepFail                 // with the error
	stepRequest              // change the spec, so that the node tries
	stepTakeBack             // take the request back, and fail with the error
	stepReplace              // delete the object, and begin again
)

// create decides about the creation of a volume whose object exists. asked is the generation of the spec that this
// call wrote, or that it found unanswered: an answer to it is the answer to this call.
func (s state) create(r drivebay.VolumeRequest, asked int64) (step, error) {
	o := s.object
	allowed := len(r.Nodes) == 0 || slices.Contains(r.Nodes, o.Spec.Node)
	switch {
	case s.released() && !s.exists() && !allowed: // by this call: see creation.change
		return stepWait, nil
	case s.released():
		return stepFail, errorf(o, drivebay.ErrPending, "it is being deleted")
	case s.refused():
		return stepReplace, s.err
	case !s.exists() && !allowed: // CreateVolume has never returned it: its node takes it back
		return stepRequest, nil
	case !s.exists() && !same(translate.SpecOf(r, ""), o.Spec):
		return stepFail, errorf(o, drivebay.ErrExists, "another volume of this name is being made on node %s", o.Spec.Node)
	case s.exists() && o.Status.Phase != v1alpha1.VolumeMade:
		return stepFail, errorf(o, drivebay.ErrUnavailable, "it is %s on node %s", o.Status.Phase, o.Spec.Node)
	case s.exists():
		if err := translate.View(o).Fits(r); err != nil {
			return stepFail, err
		}
		if !allowed {
			return stepFail, errorf(o, drivebay.ErrExists, "on node %s", o.Spec.Node)
		}
		return stepDone, nil
	case !s.answered():
		return stepWait, nil
	case s.err == nil: // the node goes on by itself
		return stepWait, nil
	case asked == o.Generation:
		return stepFail, s.err
	}
	return stepRequest, nil
}

// delete decides about the deletion of a volume whose object exists.
func (s state) delete(asked int64) (step, error) {
	switch {
	case s.refused() && !s.released():
		return stepReplace, nil
	case !s.released():
		return stepRequest, nil
	case !s.answered() || s.err == nil:
		return stepWait, nil
	case s.final() && asked == s.object.Generation:
		return stepTakeBack, s.err
	case s.final():
		return stepRequest, nil
	case asked == s.object.Generation:
		return stepFail, s.err // and the node goes on
	}
	return stepRequest, nil
}

// expand decides about the growth of a volume whose object exists.
func (s state) expand(r drivebay.SizeRange, asked int64) (step, error) {
	o := s.object
	size := uint64(max(o.Status.Capacity, 0))
	switch {
	case s.released():
		return stepFail, errorf(o, drivebay.ErrPending, "it is being deleted")
	case !s.exists():
		return stepFail, errorf(o, drivebay.ErrUnavailable, "node %s has not made it", o.Spec.Node)
	case r.Limit > 0 && r.Required > r.Limit:
		return stepFail, errorf(o, drivebay.ErrInvalid, "the required size %d is larger than the limit %d", r.Required, r.Limit)
	case r.Limit > 0 && size > r.Limit:
		return stepFail, errorf(o, drivebay.ErrRange, "the volume already has %d bytes, more than the limit %d, and a volume never shrinks", size, r.Limit)
	case size >= r.Required:
		return stepDone, nil
	case uint64(max(o.Spec.Size.Required, 0)) < r.Required:
		return stepRequest, nil
	case !s.answered():
		return stepWait, nil
	case asked != o.Generation:
		return stepRequest, nil
	case s.final():
		return stepTakeBack, s.err
	case s.err != nil:
		return stepFail, s.err
	}
	return stepFail, errorf(o, drivebay.ErrUnavailable, "node %s has not made it larger: its daemon may be older", o.Spec.Node)
}

// same reports whether two specs request the same volume, on whatever node.
func same(a, b v1alpha1.VolumeSpec) bool {
	equal := func(x, y any) bool { return x == y }
	return a.Name == b.Name && a.Mode == b.Mode && a.Size == b.Size && (a.Class == nil) == (b.Class == nil) && (a.Class == nil || equal(*a.Class, *b.Class)) &&
		(a.Source == nil) == (b.Source == nil) && (a.Source == nil || equal(*a.Source, *b.Source))
}
