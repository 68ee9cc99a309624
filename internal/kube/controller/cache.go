package controller

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/heartbeat"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// objects are the newest Volume and Snapshot objects of the cluster, and the set of volumes that follows from them.
type objects struct {
	*store[*v1alpha1.Volume]
	snapshots *store[*v1alpha1.Snapshot]
	// down returns why a node is down, "" if it is not.
	down func(node string) string
	// old returns why an object says nothing of today, "" if it does; nil: all do.
	old func(node, id string) string

	// set is the set without the changes of the volumes in changed, and of snapshots if snapshotsChanged.
	set              *drivebay.VolumeSet
	changed          map[string]bool
	snapshotsChanged bool

	classes map[v1alpha1.VolumeClass]map[string]string // parameters that volumes share
}

// newObjects returns the objects of a cluster. down returns why a node is down, gone reports whether it is gone for good.
func newObjects(down func(string) string, gone func(string) bool) *objects {
	s := &objects{down: down, set: &drivebay.VolumeSet{}, changed: map[string]bool{}, classes: map[v1alpha1.VolumeClass]map[string]string{}}
	mu, silent := &sync.Mutex{}, func(node string) bool { return down(node) != "" && !gone(node) }
	s.store = newStore[*v1alpha1.Volume](mu, func(id string) { s.changed[id] = true }, translate.AskedOfVolume, silent)
	s.snapshots = newStore[*v1alpha1.Snapshot](mu, func(string) { s.snapshotsChanged = true }, translate.AskedOfSnapshot, silent)
	return s
}

func (s *objects) isSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced && s.snapshots.synced
}

// nodesChanged shows the volumes and snapshots of nodes that went down or came back.
func (s *objects) nodesChanged(nodes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range s.byID {
		if slices.Contains(nodes, o.Spec.Node) {
			s.touch(id)
		}
	}
	s.snapshotsChanged = s.snapshotsChanged || len(nodes) > 0
}

// volumes returns the newest set: sorted by id, and never changed afterwards.
func (s *objects) volumes() *drivebay.VolumeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || !s.snapshots.synced || len(s.changed) == 0 && !s.snapshotsChanged && s.set.Seq > 0 {
		return s.set
	}
	next := &drivebay.VolumeSet{Seq: s.set.Seq + 1, Snapshots: s.set.Snapshots}
	if s.snapshotsChanged {
		next.Snapshots = s.snapshotViews()
	}
	if len(s.changed) > len(s.set.Volumes)/16 { // a search for each costs more than a walk over all
		next.Volumes = make([]*drivebay.VolumeView, 0, len(s.byID))
		for id, o := range s.byID {
			if v, known := s.set.Get(id); known && !s.changed[id] {
				next.Volumes = append(next.Volumes, v)
			} else if v := s.view(o); v != nil {
				next.Volumes = append(next.Volumes, v)
			}
		}
		slices.SortFunc(next.Volumes, func(a, b *drivebay.VolumeView) int { return strings.Compare(a.ID, b.ID) })
	} else {
		next.Volumes = slices.Clone(s.set.Volumes)
		for id := range s.changed {
			i, known := slices.BinarySearchFunc(next.Volumes, id, func(v *drivebay.VolumeView, id string) int { return strings.Compare(v.ID, id) })
			var v *drivebay.VolumeView
			if o := s.byID[id]; o != nil {
				v = s.view(o)
			}
			switch {
			case known && v != nil:
				next.Volumes[i] = v
			case known:
				next.Volumes = slices.Delete(next.Volumes, i, i+1)
			case v != nil:
				next.Volumes = slices.Insert(next.Volumes, i, v)
			}
		}
	}
	clear(s.changed)
	s.set, s.snapshotsChanged = next, false
	return next
}

// snapshotViews returns the snapshots that were made, by id. The lock is held.
func (s *objects) snapshotViews() (out []drivebay.VolumeSnapshot) {
	for _, o := range s.snapshots.byID {
		if translate.IsMade(o.Status.Phase) {
			v := translate.SnapshotView(o)
			v.Unavailable = cmp.Or(s.down(v.Node), s.isOld(v.Node, v.ID), v.Unavailable)
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b drivebay.VolumeSnapshot) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// view returns the volume of an object, nil if it was not made.
func (s *objects) view(o *v1alpha1.Volume) *drivebay.VolumeView {
	found := o.Status.Phase == v1alpha1.VolumeFound && o.Spec.Attempt > 0 // it was made once
	if !translate.IsMade(o.Status.Phase) && o.Status.Phase != v1alpha1.VolumeFailed && !found {
		return nil
	}
	v := translate.View(o)
	if c := o.Spec.Class; c != nil {
		if s.classes[*c] == nil {
			s.classes[*c] = v.Parameters
		}
		v.Parameters = s.classes[*c]
	}
	if why := s.isOld(o.Spec.Node, o.Name); why != "" {
		v.OperationalStatus = drivebay.OperationalUnknown
		v.Condition = append(slices.Clip(v.Condition), drivebay.VolumeFinding{Severity: drivebay.SeverityDegraded, Reason: heartbeat.ReasonOld, Message: why})
	}
	if why := s.down(o.Spec.Node); why != "" {
		v.OperationalStatus = drivebay.OperationalUnknown
		v.Condition = append(drivebay.Condition{{Severity: drivebay.SeverityInaccessible, Reason: reasonNodeDown, Message: why}}, v.Condition...)
	}
	return v
}

// reasonNodeDown is the reason of a volume whose node does not report (KEP-1432, node down).
const reasonNodeDown = "NodeDown"

func (s *objects) isOld(node, id string) string {
	if s.old == nil {
		return ""
	}
	return s.old(node, id)
}
