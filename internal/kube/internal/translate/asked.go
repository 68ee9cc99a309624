package translate

import "github.com/drivebay/drivebay/api/v1alpha1"

// Asked is what a Volume and a Snapshot have in common: the request of the controller, and the answer of the node.
type Asked struct {
	Kind, ID, Node       string // "volume" or "snapshot"
	Generation, Observed int64
	Attempt              int64
	Released             bool // the node is to delete it
	Phase                v1alpha1.VolumePhase
	Error                *v1alpha1.VolumeError
}

// AskedOfVolume returns what is in a Volume.
func AskedOfVolume(o *v1alpha1.Volume) Asked {
	return Asked{"volume", o.Name, o.Spec.Node, o.Generation, o.Status.ObservedGeneration, o.Spec.Attempt, o.Spec.Release == v1alpha1.ReleaseDelete, o.Status.Phase, o.Status.Error}
}

// AskedOfSnapshot returns what is in a Snapshot.
func AskedOfSnapshot(o *v1alpha1.Snapshot) Asked {
	return Asked{"snapshot", o.Name, o.Spec.Node, o.Generation, o.Status.ObservedGeneration, o.Spec.Attempt, o.Spec.Release == v1alpha1.ReleaseDelete, o.Status.Phase, o.Status.Error}
}

// Answered reports whether the node has answered the newest spec.
func (a *Asked) Answered() bool { return a.Observed == a.Generation }

// Final reports whether the node has answered with an error and does not try again by itself.
func (a *Asked) Final() bool { return a.Error != nil && !Transient(a.Error) }

// Made reports whether the node has said that the volume or snapshot was made.
func (a *Asked) Made() bool { return IsMade(a.Phase) }

// IsMade reports whether something in a phase was made.
func IsMade(p v1alpha1.VolumePhase) bool {
	switch p {
	case v1alpha1.VolumeMade, v1alpha1.VolumeReleasing, v1alpha1.VolumeMissing:
		return true
	}
	return false
}

// WasThere reports whether the node has had what is in a phase, or has found it: it may have data.
func WasThere(p v1alpha1.VolumePhase) bool {
	return IsMade(p) || p == v1alpha1.VolumeFound || p == v1alpha1.VolumeMoved
}
