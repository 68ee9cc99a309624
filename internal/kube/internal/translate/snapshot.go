package translate

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SpecOfSnapshot returns the spec of a snapshot that a node has and that no object requested.
func SpecOfSnapshot(v *drivebay.VolumeSnapshot, node string) v1alpha1.SnapshotSpec {
	return v1alpha1.SnapshotSpec{Node: node, Name: v.Name, Volume: v.Source}
}

// ObserveSnapshot writes what a node observes of a snapshot into a status, except the answer to the spec.
func ObserveSnapshot(s *v1alpha1.SnapshotStatus, v *drivebay.VolumeSnapshot) {
	s.Capacity, s.Size = bytes(v.Size), sizeText(v.Size)
	s.Created = metav1.Time{Time: v.Created.UTC().Truncate(time.Second)} // an object has whole seconds
	s.Mode, s.FSType, s.Encrypted = modeOf(v.Block), v.FSType, v.LUKSUUID != ""
	s.Location, s.Unavailable = locationOf(v.Location), v.Unavailable
}

// SnapshotView returns the snapshot in an object, as the CSI services answer it.
func SnapshotView(o *v1alpha1.Snapshot) drivebay.VolumeSnapshot {
	s := &o.Status
	v := drivebay.VolumeSnapshot{ID: o.Name, Name: o.Spec.Name, Source: o.Spec.Volume, Node: o.Spec.Node, Size: uint64(max(s.Capacity, 0)), Created: s.Created.Time,
		Block: s.Mode == v1alpha1.ModeBlock, FSType: s.FSType, Location: location(s.Location), Unavailable: s.Unavailable}
	if s.Encrypted {
		v.LUKSUUID = encrypted
	}
	if v.Unavailable == "" && s.Phase == v1alpha1.VolumeMissing { // the status may be that of an older daemon, which gives no reason
		v.Unavailable = "it is " + string(s.Phase) + " on node " + o.Spec.Node
	}
	return v
}
