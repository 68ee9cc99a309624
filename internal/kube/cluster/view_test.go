package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func object(id, node string, change func(*v1alpha1.DriveStatus)) *v1alpha1.Drive {
	o := &v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Name: id + "." + node}}
	o.Status = v1alpha1.DriveStatus{Node: node, ID: id, Device: "sda", State: "ONLINE", Health: "GOOD", Usage: "IN_USE", Bay: v1alpha1.DriveBay{Enclosure: "5000", Name: "Slot 1"}}
	if change != nil {
		change(&o.Status)
	}
	return o
}

// TestSnapshot: the drives of one node are as on the node; those of several have names and bays that are told apart, and a node that
// does not report makes the list incomplete.
func TestSnapshot(t *testing.T) {
	unwritten := &v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Name: "naa-9.n1"}}
	one := snapshotOf("prod", []*v1alpha1.Drive{unwritten, object("naa-1", "n1", nil)}, nil, noon)
	if len(one.Drives) != 1 || one.Machine.Name != "n1" || one.Drives[0].Slot.Enclosure != "5000" || !one.Complete || one.Bays[0].Drive != "naa-1.n1" {
		t.Errorf("one node: %+v", one)
	}
	old := map[string]string{"n2": "node n2: the daemon has not reported for 3m0s", "n3": "node n3"}
	two := snapshotOf("prod", []*v1alpha1.Drive{object("naa-2", "n2", nil), object("naa-1", "n1", nil)}, old, noon)
	if two.Machine.Name != "prod" || two.Drives[0].ID != "naa-1.n1" || two.Drives[1].Slot.Enclosure != "n2/5000" || two.Complete || len(two.Problems) != 1 {
		t.Errorf("two nodes: %+v", two)
	}
	if d, err := two.Resolve("naa-2"); err != nil || d.Node != "n2" {
		t.Errorf("the id of the node finds %v, %v", d, err)
	}
}

// TestDrive: what commands read of a drive is in it.
func TestDrive(t *testing.T) {
	percent := int32(37)
	d := driveOf(object("naa-1", "n1", func(s *v1alpha1.DriveStatus) {
		s.State, s.Usage, s.Health = "OFFLINE", "RELEASING", "BAD"
		s.Findings = []v1alpha1.DriveFinding{{Code: "DriveOffline", Severity: "UNKNOWN", Since: metav1.NewTime(noon.Add(-time.Hour))}}
		s.Removal = &v1alpha1.DriveRemoval{Cause: "moving", Percent: &percent, Total: 1000}
		s.Replaces = &v1alpha1.DriveReplaces{ID: "naa-0", Taken: metav1.NewTime(noon)}
		s.ClaimedBy, s.Bay.HasLight = "operator", true
	}), noon)
	switch {
	case d.Status != drivebay.StatusOffline || d.Usage != drivebay.UsageReleasing || d.Health != drivebay.HealthBad || d.Claim.By != drivebay.ClaimedByOperator:
		t.Errorf("states: %+v", d)
	case d.Leaving.Progress.Done != 370 || d.Leaving.Progress.Percent() != 37 || d.Leaving.Cause != "moving":
		t.Errorf("removal: %+v %+v", d.Leaving, d.Leaving.Progress)
	case d.Succeeds.Of != "naa-0.n1" || d.Succeeds.Taken.IsZero():
		t.Errorf("replaces %+v", d.Succeeds)
	case !d.LastSeen.Equal(noon.Add(-time.Hour)) || d.Slot.Locate == "":
		t.Errorf("last seen %v, light %q", d.LastSeen, d.Slot.Locate)
	}
	later := driveOf(object("naa-1", "n1", func(s *v1alpha1.DriveStatus) { s.Usage, s.Health = "MELTING", "" }), noon)
	if later.Usage != drivebay.UsageUnknown || later.Health != drivebay.HealthUnknown {
		t.Errorf("words of a later version: %v, %v", later.Usage, later.Health)
	}
}

// TestVolumes: those that are not made are left out, and those of a node that is down are abnormal.
func TestVolumes(t *testing.T) {
	volume := func(name, node string, phase v1alpha1.VolumePhase) *v1alpha1.Volume {
		return &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: drivebay.VolumeID(name)}, Spec: v1alpha1.VolumeSpec{Node: node, Name: name},
			Status: v1alpha1.VolumeStatus{Phase: phase, OperationalStatus: "OPERATIVE", Location: v1alpha1.VolumeLocation{Drives: []string{"naa-1"}}}}
	}
	mine := volume("a", "n1", v1alpha1.VolumeMade)
	set := volumesOf([]*v1alpha1.Volume{mine, volume("b", "n2", v1alpha1.VolumeMade), volume("c", "n1", v1alpha1.VolumeRefused), volume("d", "n1", "")}, map[string]string{"n2": "node n2: gone"}, noon)
	if len(set.Volumes) != 2 {
		t.Fatalf("%d volumes", len(set.Volumes))
	}
	a, _ := set.Get(drivebay.VolumeID("a"))
	b, _ := set.Get(drivebay.VolumeID("b"))
	if a.Location.Drives[0] != "naa-1.n1" || a.Condition.Abnormal() || b.OperationalStatus != drivebay.OperationalUnknown || b.Condition[0].Reason != nodeDown {
		t.Errorf("%+v, %+v", a, b)
	}
	if mine.Status.Location.Drives[0] != "naa-1" {
		t.Error("the object was changed")
	}
}

// TestAnswer: the answer to a wish is that of the node to this value of the field, not an older one.
func TestAnswer(t *testing.T) {
	o := object("naa-1", "n1", nil)
	o.Status.ObservedGeneration = 4
	for state, c := range map[string]struct {
		field, value string
		generation   int64
		requests     []v1alpha1.DriveRequest
		ok           bool
		err          error
	}{
		"older":         {"claim", "true", 5, []v1alpha1.DriveRequest{{Field: "claim", Value: "true", State: "Applied"}}, false, nil},
		"applied":       {"claim", "true", 4, []v1alpha1.DriveRequest{{Field: "claim", Value: "true", State: "Applied"}}, true, nil},
		"another value": {"claim", "true", 4, []v1alpha1.DriveRequest{{Field: "claim", Value: "false", State: "Applied"}}, false, nil},
		"applying":      {"release", "true", 4, []v1alpha1.DriveRequest{{Field: "release", Value: "true", State: "Applying"}}, false, nil},
		"busy":          {"release", "true", 4, []v1alpha1.DriveRequest{{Field: "release", Value: "true", State: "Refused", Reason: "Busy", Message: "in use"}}, true, drivebay.ErrBusy},
		"unknown":       {"release", "true", 4, []v1alpha1.DriveRequest{{Field: "release", Value: "true", State: "Failed", Reason: "New", Message: "x"}}, true, drivebay.ErrRefused},
		"removed":       {"claim", "", 4, nil, true, nil},
	} {
		o.Status.Requests = c.requests
		if err, ok := applied(o, c.field, c.value, c.generation); ok != c.ok || !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
			t.Errorf("%s: %v, %v", state, err, ok)
		}
	}
}

// TestDownNodes: a node is down some time after the end of its Lease.
func TestDownNodes(t *testing.T) {
	lease := func(node string, age time.Duration) coordinationv1.Lease {
		seconds, at := int32(40), metav1.NewMicroTime(noon.Add(-age))
		return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "drivebay-node-" + node}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &at}}
	}
	down, leased := downNodes([]coordinationv1.Lease{lease("n1", time.Minute), lease("n2", 2*time.Minute), lease("n3", -20*time.Second), lease("n4", -24*time.Hour), {}}, noon)
	if len(down) != 2 || !strings.Contains(down["n2"], "has not reported for 2 min") || !strings.Contains(down["n4"], "24 h ahead") || len(leased) != 4 {
		t.Errorf("%v, %v", down, leased)
	}
}

// TestNodeWithoutLease: a node that has objects and no Lease counts as down in the lists of drives and volumes and on the page, unless
// the Leases are not known.
func TestNodeWithoutLease(t *testing.T) {
	listed := func(o *v1alpha1.Drive) *v1alpha1.Drive { o.ResourceVersion = "1"; return o }
	for _, known := range []bool{true, false} {
		c, err := New(Options{}, "prod", &rest.Config{Host: "http://api"}, "")
		if err != nil {
			t.Fatal(err)
		}
		_ = c.driveObjects.Replace([]any{listed(object("naa-1", "n1", nil)), listed(object("naa-2", "n2", nil))}, "5")
		_ = c.volumeObjects.Replace([]any{&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: drivebay.VolumeID("a"), ResourceVersion: "1"}, Spec: v1alpha1.VolumeSpec{Node: "n3", Name: "a"},
			Status: v1alpha1.VolumeStatus{Phase: v1alpha1.VolumeMade, OperationalStatus: "OPERATIVE"}}}, "5")
		if known {
			c.leased = map[string]bool{"n1": true}
		}
		c.publish()
		down, s, v := c.Down(), c.Snapshot(), c.Volumes().Volumes[0]
		if len(down) != map[bool]int{true: 2}[known] || known != strings.Contains(down["n3"], "no Lease") {
			t.Errorf("Leases known %v: down: %v", known, down)
		}
		if s.Complete == known || (len(s.Problems) == 1) != known || v.Condition.Abnormal() != known {
			t.Errorf("Leases known %v: drives complete %v, problems %q; volume %v", known, s.Complete, s.Problems, v.Condition.Message())
		}
	}
}

// TestProgress: a removal is as far as its node says.
func TestProgress(t *testing.T) {
	for percent := range int32(101) {
		o := object("naa-1", "n1", func(s *v1alpha1.DriveStatus) {
			s.Removal = &v1alpha1.DriveRemoval{Percent: &percent, Total: 4<<40 + 7}
		})
		d := driveOf(o, noon)
		if got := d.Leaving.Progress.Percent(); got != int(percent) {
			t.Errorf("%d %% of the node is %d %%", percent, got)
		}
	}
}

// TestEventLog: an event is listed once, again when it has happened again, and not for each object that shows it.
func TestEventLog(t *testing.T) {
	event := func(name, kind, reason string, at time.Time, count int32) client.Event {
		e := client.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, EventTime: metav1.NewMicroTime(at), Reason: reason, ReportingInstance: "n1", Regarding: client.Reference{Kind: kind, Name: "x"}}
		if count > 1 {
			e.Series = &client.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(at.Add(time.Minute))}
		}
		return e
	}
	var l eventLog
	list := []client.Event{event("b", "Volume", "VolumeAbnormal", noon.Add(time.Second), 1), event("a", "Drive", "DriveVanished", noon, 1),
		event("c", "Node", "DriveVanished", noon, 1), event("d", "PersistentVolumeClaim", "VolumeAbnormal", noon, 1), event("e", "Node", "StoreFailed", noon.Add(2*time.Second), 1)}
	l.add(list, "")
	if all := l.after(0, 0); len(all) != 3 || all[0].Kind != drivebay.EventVanished || all[2].Kind != drivebay.EventStoreFailed || all[2].Seq != 3 {
		t.Fatalf("%+v", all)
	}
	list[1] = event("a", "Drive", "DriveVanished", noon, 2)
	l.add(list, "")
	if more := l.after(3, 0); len(more) != 1 || more[0].Drive != "x" || !more[0].At.Equal(noon.Add(time.Minute)) {
		t.Errorf("again: %+v", more)
	}
	var other eventLog
	if other.add(list, "n2"); len(other.after(0, 0)) != 0 {
		t.Error("the events of another node")
	}
}
