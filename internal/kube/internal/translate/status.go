package translate

import (
	"math"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of the lists in a status; the CRD has the same.
const (
	maxFindings     = 16
	maxPublications = 64
	maxReason       = 128
)

// Observe writes what a node observes of a volume into a status, except the answer to the spec.
func Observe(s *v1alpha1.VolumeStatus, v *drivebay.VolumeView) {
	s.Capacity, s.Size = bytes(v.Size), sizeText(v.Size)
	s.Created = metav1.Time{Time: v.Created.UTC().Truncate(time.Second)} // an object has whole seconds
	s.BlockDevice = ""
	if v.Mode == drivebay.ModeRaw || v.Mode == drivebay.ModeRawPart {
		s.BlockDevice = v.Mode.String()
	}
	s.Encrypted = v.Encrypted()
	s.Location = locationOf(v.Location)
	s.Health, s.OperationalStatus, s.CSIStatus, s.Usage = v.Health.String(), v.OperationalStatus.String(), v.CSIStatus.String(), v.Usage.String()
	s.MoveBeforeUse = v.MoveBeforeUse
	s.Findings, s.Publications = findingsOf(v.Condition), nil
	for _, p := range v.Publications[:min(len(v.Publications), maxPublications)] {
		s.Publications = append(s.Publications, v1alpha1.VolumePublication{Path: p.Path, Staging: p.Staging, ReadOnly: p.ReadOnly})
	}
}

func locationOf(l drivebay.Location) v1alpha1.VolumeLocation {
	return v1alpha1.VolumeLocation{Kind: l.Kind.String(), Drives: l.Drives, Partition: l.Partition, VG: l.VG, LV: l.LV, Instance: l.Instance}
}

func location(l v1alpha1.VolumeLocation) drivebay.Location {
	return drivebay.Location{Kind: parse[drivebay.LocationKind](l.Kind), Drives: l.Drives, Partition: l.Partition, VG: l.VG, LV: l.LV, Instance: l.Instance}
}

func findingsOf(c drivebay.Condition) []v1alpha1.VolumeFinding {
	var out []v1alpha1.VolumeFinding
	for _, f := range c[:min(len(c), maxFindings)] {
		out = append(out, v1alpha1.VolumeFinding{Severity: f.Severity.String(), Reason: drivebay.Clip(f.Reason, maxReason), Message: drivebay.PlainText(f.Message, maxMessage)})
	}
	return out
}

// The reasons of the condition Healed for the result of a repair. An error of the node has its code as the reason.
const (
	HealNothing  = "NothingToRepair"
	HealRepaired = "Repaired"
	HealFailed   = "NotRepaired" // a repair was tried and failed
	HealAbnormal = "Abnormal"    // something is left that no repair ends
)

// IsHealResult reports whether a reason of the condition Healed is that of a result: the repair was not refused.
func IsHealResult(reason string) bool {
	switch reason {
	case HealNothing, HealRepaired, HealFailed, HealAbnormal:
		return true
	}
	return false
}

// Healing returns the result of a repair as it is in a status.
func Healing(request string, r *drivebay.HealReport) *v1alpha1.VolumeHealing {
	const most, length = 16, 512
	out := &v1alpha1.VolumeHealing{Request: request}
	for _, s := range r.Steps[:min(len(r.Steps), most)] {
		out.Repairs = append(out.Repairs, v1alpha1.VolumeRepair{Repair: drivebay.Clip(s.Repair, maxReason), Why: drivebay.PlainText(s.Why, length),
			Done: drivebay.PlainText(s.Done, length), Failed: drivebay.PlainText(s.Failed, length)})
	}
	return out
}

// View returns the volume in an object, as the CSI services answer it.
func View(o *v1alpha1.Volume) *drivebay.VolumeView {
	s := &o.Status
	v := &drivebay.VolumeView{Volume: drivebay.Volume{
		ID: o.Name, Name: o.Spec.Name, Node: o.Spec.Node, Size: uint64(max(s.Capacity, 0)), Created: s.Created.Time, Parameters: parametersOf(o.Spec.Class),
		Location: location(s.Location),
		Health:   parse[drivebay.Health](s.Health), OperationalStatus: parse[drivebay.OperationalStatus](s.OperationalStatus),
		CSIStatus: parse[drivebay.CSIStatus](s.CSIStatus), Usage: parse[drivebay.VolumeUsage](s.Usage), MoveBeforeUse: s.MoveBeforeUse,
	}}
	if o.Spec.Source != nil {
		v.Source = drivebay.Source{Snapshot: o.Spec.Source.Snapshot, Volume: o.Spec.Source.Volume}
	}
	switch o.Spec.Mode {
	case v1alpha1.ModeFilesystem:
		v.Mode = drivebay.ModeFS
		if o.Spec.Class != nil {
			v.FSType = o.Spec.Class.FSType
		}
	case v1alpha1.ModeBlock:
		if v.Mode = parse[drivebay.VolumeMode](s.BlockDevice); v.Mode == drivebay.ModeUnknown {
			v.Mode = drivebay.ModeRaw
		}
	}
	if s.Encrypted {
		v.LUKSUUID = encrypted
	}
	for _, p := range s.Publications {
		v.Publications = append(v.Publications, drivebay.Publication{Path: p.Path, Staging: p.Staging, ReadOnly: p.ReadOnly})
	}
	for _, f := range s.Findings {
		v.Condition = append(v.Condition, drivebay.VolumeFinding{Severity: parse[drivebay.Severity](f.Severity), Reason: f.Reason, Message: f.Message})
	}
	return v
}

// encrypted stands for the UUID of a LUKS header, which objects do not have: only whether there is a
// header matters outside of the node.
const encrypted = "encrypted"

// parse returns a value of an enum by its name; unknown names are the zero value, which promises nothing.
func parse[E any, P interface {
	*E
	UnmarshalText([]byte) error
}](name string) E {
	var e, none E
	if name == "" || P(&e).UnmarshalText([]byte(name)) != nil {
		return none
	}
	return e
}

// sizeText returns a size in the notation of Kubernetes, "10Gi".
func sizeText(n uint64) string {
	return resource.NewQuantity(int64(min(n, math.MaxInt64)), resource.BinarySI).String()
}
