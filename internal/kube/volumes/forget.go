package volumes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// forgets reports whether the node is to give up its record of a volume whose drive is gone for good. The engine knows which
// mounts are gone with the drive: it is asked again while a pod uses the volume.
func forgets(o *v1alpha1.Volume, v *drivebay.VolumeView) bool {
	return o.Spec.Forget != "" && o.Status.Forget != o.Spec.Forget && !isFound(v) && o.Status.Phase != ""
}

// setForgotten writes the answer to spec.forget into a status. A volume in no record has been forgotten: the status could
// not be written then, or a person was faster on the node.
func setForgotten(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, v *drivebay.VolumeView, out outcome, now time.Time) {
	r := once{drive: o.Spec.Forget, answered: &s.Forget, condition: v1alpha1.VolumeForgotten, did: out.did == callForgetLost, again: true,
		done: "Forgotten", text: "the node has no record of the volume any more"}
	e := translate.ErrorOf(out.err)
	if gone := v == nil && out.listed || v != nil && isFound(v); !r.did && gone {
		r.did, e = s.Forget != r.drive, nil
	}
	r.set(o, s, e, now)
}

// notAway returns an error if the engine does not have the volume that an object shows, and a drive is away that had it: the records of
// the node may have been lost since, with the machine, and its data are on the drive. spec.forget gives them up, and so does the removal of
// the drive.
func (n *Node) notAway(o *v1alpha1.Volume) error {
	if n.find(o.Name) != nil || !wasMade(o) || !wasThere(o) || n.volumes.memoryOf(o.Name).deleted || !n.isAway(o.Status.Location.Drives, o.Spec.Forget) {
		return nil
	}
	return notWiped(o, o.Status.Location.Drives)
}

// snapshotNotAway is notAway for a snapshot. Its object gives it up when it is deleted: a new one has no status.
func (n *Node) snapshotNotAway(o *v1alpha1.Snapshot) error {
	v, _ := n.opt.Engine.Volumes().GetSnapshot(o.Name)
	if v != nil || !translate.WasThere(o.Status.Phase) || n.snapshots.memoryOf(o.Name).deleted || !n.isAway(o.Status.Location.Drives, "") {
		return nil
	}
	return notRemoved(o)
}

// isAway reports whether one of these drives is not in the machine, except one that is given up or was removed.
func (n *Node) isAway(drives []string, givenUp string) bool {
	known := n.opt.Engine.Volumes().Drives
	return known != nil && slices.ContainsFunc(drives, func(id string) bool {
		d, ok := known.Get(id)
		return id != givenUp && (!ok || d.Status == drivebay.StatusOffline && d.Usage != drivebay.UsageRemoved)
	})
}

// notWiped is the answer to the deletion of a volume that its node does not find.
func notWiped(o *v1alpha1.Volume, drives []string) error {
	return fmt.Errorf("volume %s: delete: %w: node %s does not find it, so it is not wiped: return its drive (%s); if that is gone for good, set spec.forget to its id",
		o.Name, drivebay.ErrUnavailable, o.Spec.Node, strings.Join(drives, ", "))
}
