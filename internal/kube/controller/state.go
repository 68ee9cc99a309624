package controller

import (
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// state is what the decisions about an object need.
type state struct {
	translate.Asked
	err error // that the node has answered
}

func stateOf(a translate.Asked) state { return state{a, translate.Error(a.Error)} }

// refused reports whether the node made nothing and will not: the object can be deleted without a trace.
func (s *state) refused() bool { return s.Answered() && s.Phase == v1alpha1.VolumeRefused }

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

// volumeState is what the decisions about a Volume need.
type volumeState struct {
	state
	object *v1alpha1.Volume
}

func volumeStateOf(o *v1alpha1.Volume) volumeState {
	return volumeState{stateOf(translate.AskedOfVolume(o)), o}
}

// create decides about the creation of a volume whose object exists. asked is the generation of the spec that this
// call wrote, or that it found unanswered: an answer to it is the answer to this call.
func (s volumeState) create(r drivebay.VolumeRequest, asked int64) (step, error) {
	o := s.object
	allowed := len(r.Nodes) == 0 || slices.Contains(r.Nodes, o.Spec.Node)
	switch {
	case s.Released && s.Answered() && s.Final(): // no later request may delete what the claim is to have
		return stepTakeBack, s.err
	case s.Released && !s.Made() && !allowed: // by this call: see creation.change
		return stepWait, nil
	case s.Released:
		return stepFail, s.errorf(drivebay.ErrPending, "it is being deleted")
	case s.refused():
		return stepReplace, s.err
	case translate.WasThere(s.Phase) && o.Status.Phase != v1alpha1.VolumeMade: // it may have data: it is neither made again nor taken back
		return stepFail, s.errorf(drivebay.ErrUnavailable, "it is %s on node %s", o.Status.Phase, o.Spec.Node)
	case !s.Made() && !allowed: // CreateVolume has never returned it: its node takes it back
		return stepRequest, nil
	case !s.Made() && !isOf(o.Spec, r):
		return stepFail, s.errorf(drivebay.ErrExists, "another volume of this name is being made on node %s", o.Spec.Node)
	case s.Made():
		if err := translate.View(o).Fits(r); err != nil {
			return stepFail, err
		}
		if !allowed {
			return stepFail, s.errorf(drivebay.ErrExists, "on node %s", o.Spec.Node)
		}
		return stepDone, nil
	}
	return s.awaited(asked)
}

// awaited decides about something that the node has not made yet.
func (s state) awaited(asked int64) (step, error) {
	switch {
	case !s.Answered() || s.err == nil: // the node goes on by itself
		return stepWait, nil
	case asked == s.Generation:
		return stepFail, s.err
	}
	return stepRequest, nil
}

// createSnapshot decides about the creation of a snapshot of a volume whose object exists; of is the volume that the
// object names.
func (s state) createSnapshot(of, volume string, asked int64) (step, error) {
	switch {
	case s.Released:
		return stepFail, s.errorf(drivebay.ErrPending, "it is being deleted")
	case s.refused():
		return stepReplace, s.err
	case of != volume:
		return stepFail, s.errorf(drivebay.ErrExists, "the name is used by a snapshot of volume %s", of)
	case s.Phase == v1alpha1.VolumeMade:
		return stepDone, nil
	case s.Made():
		return stepFail, s.errorf(drivebay.ErrUnavailable, "it is %s on node %s", s.Phase, s.Node)
	}
	return s.awaited(asked)
}

// delete decides about the deletion of a volume or snapshot whose object exists.
func (s state) delete(asked int64) (step, error) {
	switch {
	case s.refused() && !s.Released:
		return stepReplace, nil
	case !s.Released:
		return stepRequest, nil
	case !s.Answered() || s.err == nil:
		return stepWait, nil
	case s.Final() && asked == s.Generation:
		return stepTakeBack, s.err
	case s.Final():
		return stepRequest, nil
	case asked == s.Generation:
		return stepFail, s.err // and the node goes on
	}
	return stepRequest, nil
}

// expand decides about the growth of a volume whose object exists.
func (s volumeState) expand(r drivebay.SizeRange, asked int64) (step, error) {
	o := s.object
	size := uint64(max(o.Status.Capacity, 0))
	switch {
	case s.Released:
		return stepFail, s.errorf(drivebay.ErrPending, "it is being deleted")
	case !s.Made():
		return stepFail, s.errorf(drivebay.ErrUnavailable, "node %s has not made it", o.Spec.Node)
	case r.Limit > 0 && r.Required > r.Limit:
		return stepFail, s.errorf(drivebay.ErrInvalid, "the required size %d is larger than the limit %d", r.Required, r.Limit)
	case r.Limit > 0 && size > r.Limit:
		return stepFail, s.errorf(drivebay.ErrRange, "the volume already has %d bytes, more than the limit %d, and a volume never shrinks", size, r.Limit)
	case size >= r.Required:
		return stepDone, nil
	case uint64(max(o.Spec.Size.Required, 0)) < r.Required:
		return stepRequest, nil
	case !s.Answered():
		return stepWait, nil
	case asked != o.Generation:
		return stepRequest, nil
	case s.Final():
		return stepTakeBack, s.err
	case s.err != nil:
		return stepFail, s.err
	}
	return stepFail, s.errorf(drivebay.ErrUnavailable, "node %s has not made it larger: its daemon may be older", o.Spec.Node)
}

// isOf reports whether a spec is that of a request. A copy has the filesystem of its source, whatever the default of the class is.
func isOf(spec v1alpha1.VolumeSpec, r drivebay.VolumeRequest) bool {
	if r.Source != (drivebay.Source{}) && r.FSType == "" && spec.Class != nil {
		r.Class.FSType = spec.Class.FSType
	}
	return same(translate.SpecOf(r, ""), spec)
}

// same reports whether two specs request the same volume, on whatever node.
func same(a, b v1alpha1.VolumeSpec) bool {
	equal := func(x, y any) bool { return x == y }
	return a.Name == b.Name && a.Mode == b.Mode && a.Size == b.Size && (a.Class == nil) == (b.Class == nil) && (a.Class == nil || equal(*a.Class, *b.Class)) &&
		(a.Source == nil) == (b.Source == nil) && (a.Source == nil || equal(*a.Source, *b.Source))
}
