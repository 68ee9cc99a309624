package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/drives"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// driveOf returns the drive in an object. Its ID is the name of the object, which no drive of another node has.
func driveOf(o *v1alpha1.Drive, now time.Time) drivebay.Drive {
	s := &o.Status
	d := drivebay.Drive{
		ID: o.Name, Node: s.Node, Name: s.Device, IdentityIssue: s.Identity.Issue,
		Identity: drivebay.Identity{Vendor: s.Identity.Vendor, Model: s.Identity.Model, Serial: s.Identity.Serial, Firmware: s.Identity.Firmware,
			WWN: s.Identity.WWN, Size: uint64(max(s.Capacity.Total, 0))},
		Type: translate.Parse[drivebay.Type](s.Type), Transport: translate.Parse[drivebay.Transport](s.Transport), LogicalBlock: int(s.LogicalBlockSize),
		Slot:   drivebay.Slot{Enclosure: s.Bay.Enclosure, Bay: s.Bay.Name, Lit: s.Bay.Located, FaultLit: s.Bay.FaultLit},
		System: s.System, Content: drivebay.Content{Kind: translate.Parse[drivebay.ContentKind](s.Content)},
		Status: translate.Parse[drivebay.Status](s.State), Health: translate.Parse[drivebay.Health](s.Health), Usage: translate.Parse[drivebay.Usage](s.Usage),
		Cordoned: s.Cordoned, FirstSeen: o.CreationTimestamp.Time, LastSeen: now,
	}
	if s.Bay.HasLight {
		d.Slot.Locate = "the Drive object"
	}
	if s.ClaimedBy != "" {
		d.Claim = &drivebay.Claim{By: drivebay.ClaimedBy(s.ClaimedBy)}
	}
	if s.PercentUsed != nil {
		d.Wear = &drivebay.Wear{PercentUsed: int(*s.PercentUsed)}
	}
	for _, f := range s.Findings {
		d.Findings = append(d.Findings, drivebay.Finding{Code: f.Code, Severity: translate.Parse[drivebay.Health](f.Severity), Text: f.Text, Advice: f.Advice, Since: f.Since.Time})
		if d.Status == drivebay.StatusOffline && f.Since.Time.Before(d.LastSeen) {
			d.LastSeen = f.Since.Time
		}
	}
	if r := s.Removal; r != nil {
		d.Leaving = &drivebay.Leaving{Since: r.Since.Time, Why: r.Why, Cause: r.Cause}
		if r.Percent != nil && r.Total > 0 {
			total := uint64(r.Total)
			d.Leaving.Progress = &drivebay.Progress{Done: (total*uint64(max(*r.Percent, 0)) + 99) / 100, Total: total} // rounded up, so that it is this percentage again
		}
	}
	if r := s.Replaces; r != nil {
		d.Succeeds = &drivebay.Succession{Of: drives.ObjectName(r.ID, s.Node), Against: r.Against, Taken: r.Taken.Time}
	}
	return d
}

// snapshotOf returns the drives in objects. Those of several nodes have the node in front of their enclosure, so that no
// two bays have the same name.
func snapshotOf(name string, objects []*v1alpha1.Drive, down map[string]string, now time.Time) *drivebay.Snapshot {
	s := &drivebay.Snapshot{At: now, Machine: drivebay.Machine{Name: name, Kind: "cluster"}, Complete: true}
	nodes := map[string]bool{}
	for _, o := range objects {
		if o.Status.Node == "" { // the node has not written it yet
			continue
		}
		s.Drives = append(s.Drives, driveOf(o, now))
		nodes[o.Status.Node] = true
	}
	slices.SortFunc(s.Drives, func(a, b drivebay.Drive) int { return cmp.Compare(a.ID, b.ID) })
	one := len(nodes) == 1
	if one {
		s.Machine.Name = s.Drives[0].Node
		s.Machine.Hardware = machinesOf(objects)[s.Machine.Name]
	}
	for i := range s.Drives {
		d := &s.Drives[i]
		if !one {
			d.Slot.Enclosure = strings.TrimSuffix(d.Node+"/"+d.Slot.Enclosure, "/")
		}
		if d.Slot.Bay != "" {
			s.Bays = append(s.Bays, drivebay.Bay{Slot: d.Slot, Drive: d.ID})
		}
	}
	for node, why := range down {
		if nodes[node] {
			s.Complete = false
			s.Problems = append(s.Problems, why+": what is shown of it may be old")
		}
	}
	slices.Sort(s.Problems)
	return s
}

// machinesOf returns which machine each node is.
func machinesOf(objects []*v1alpha1.Drive) map[string]*drivebay.Hardware {
	out := map[string]*drivebay.Hardware{}
	for _, o := range objects {
		if m := o.Status.Machine; out[o.Status.Node] == nil && m != (v1alpha1.MachineHardware{}) {
			out[o.Status.Node] = &drivebay.Hardware{Vendor: m.Vendor, Product: m.Product, Serial: m.Serial, Chassis: drivebay.Chassis{AssetTag: m.AssetTag}}
		}
	}
	return out
}

// volumesOf returns the volumes in objects.
func volumesOf(objects []*v1alpha1.Volume, down map[string]string, now time.Time) *drivebay.VolumeSet {
	set := &drivebay.VolumeSet{At: now, Volumes: []*drivebay.VolumeView{}}
	for _, o := range objects {
		if o.Status.Phase == "" || o.Status.Phase == v1alpha1.VolumeRefused {
			continue
		}
		v := translate.View(o)
		v.Location.Drives = slices.Clone(v.Location.Drives) // those of the object
		for i, id := range v.Location.Drives {
			v.Location.Drives[i] = drives.ObjectName(id, o.Spec.Node)
		}
		if why := down[o.Spec.Node]; why != "" {
			v.OperationalStatus = drivebay.OperationalUnknown
			v.Condition = append(drivebay.Condition{{Severity: drivebay.SeverityInaccessible, Reason: nodeDown, Message: why}}, v.Condition...)
		}
		set.Volumes = append(set.Volumes, v)
	}
	slices.SortFunc(set.Volumes, func(a, b *drivebay.VolumeView) int { return cmp.Compare(a.ID, b.ID) })
	return set
}

// applied returns the answer of the node to a field of the spec of this generation; ok is false until the node has answered.
func applied(o *v1alpha1.Drive, field, value string, generation int64) (err error, ok bool) {
	if o.Status.ObservedGeneration < generation {
		return nil, false
	}
	for _, r := range o.Status.Requests {
		if r.Field != field || r.Value != value {
			continue
		}
		switch r.State {
		case "Applied":
			return nil, true
		case "Refused", "Failed":
			return refusal(o.Name, r), true
		}
		return nil, false
	}
	return nil, value == ""
}

// waitsFor returns the message of what a spec waits for.
func waitsFor(o *v1alpha1.Drive) string {
	for _, c := range o.Status.Conditions {
		if c.Type == v1alpha1.DriveSpecApplied && c.Status == metav1.ConditionUnknown {
			return c.Message
		}
	}
	return ""
}
