package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAcknowledgedByNewObject: that a volume or snapshot is as requested is said only of one that its node shows now: not while
// the node is down or cannot write the object, and not of a volume that it does not find.
func TestAcknowledgedByNewObject(t *testing.T) {
	const unknown = true
	for name, tc := range map[string]struct {
		node    string
		old     bool
		phase   v1alpha1.VolumePhase
		unknown bool
	}{
		"shown":              {"m", false, v1alpha1.VolumeMade, !unknown},
		"the node is down":   {"n", false, v1alpha1.VolumeMade, unknown},
		"the object is old":  {"m", true, v1alpha1.VolumeMade, unknown},
		"it is not found":    {"m", false, v1alpha1.VolumeMissing, unknown},
		"missing, node down": {"n", false, v1alpha1.VolumeMissing, unknown},
	} {
		c, _ := leadingOver(t)
		v := numbered(0, 5, tc.node)
		v.Spec.Name, v.Name = "a", drivebay.VolumeID("a")
		v.Status = at(v1alpha1.VolumeMade, "").object.Status
		v.Status.Phase = tc.phase
		c.objects.put(v)
		snap := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: drivebay.SnapshotID("s"), UID: "s", ResourceVersion: "6"},
			Spec: v1alpha1.SnapshotSpec{Node: tc.node, Name: "s", Volume: v.Name}, Status: v1alpha1.SnapshotStatus{Phase: tc.phase, Capacity: gib}}
		c.objects.snapshots.put(snap)
		if tc.old {
			l := roomy(tc.node, time.Now().Add(2*time.Second))
			l.Annotations["drivebay.io/report"] = `{"mirrored":true,"whole":true,"old":["` + v.Name + `","` + snap.Name + `"]}`
			_ = c.nodes.Update(l)
			c.objects.nodesChanged(c.nodes.look())
		}
		_, create := c.CreateVolume(t.Context(), requested())
		_, _, expand := c.ExpandVolume(t.Context(), v.Name, drivebay.SizeRange{Required: gib})
		_, capture := c.CreateSnapshot(t.Context(), "s", v.Name)
		for call, err := range map[string]error{"create": create, "expand": expand, "snapshot": capture} {
			if errors.Is(err, drivebay.ErrUnavailable) != tc.unknown || !tc.unknown && err != nil {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
	}
}
