package drives

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// The limits of the schema, in bytes: a text within them has no more characters either.
const (
	maxWord     = 64
	maxField    = 128
	maxText     = 512
	maxCause    = 1024
	maxFindings = 32
	maxRefusals = 16
	maxMembers  = 16
)

// node is what the status of each drive of a node has in common.
type node struct {
	name  string
	rooms map[string]drivebay.DriveRoom // nil: not known yet
}

// observed returns the status of a drive without the requests, the conditions and the generation. was is the
// status of the object.
func (n node) observed(s *drivebay.Snapshot, d *drivebay.Drive, was *v1alpha1.DriveStatus) v1alpha1.DriveStatus {
	return v1alpha1.DriveStatus{
		Node: n.name, FirstSeen: second(d.FirstSeen), ID: d.ID, Device: clip(d.Name, maxWord),
		Identity: v1alpha1.DriveIdentity{
			Vendor: clip(d.Vendor, maxField), Model: clip(d.Model, maxField), Serial: clip(d.Serial, maxField),
			Firmware: clip(d.Firmware, maxWord), WWN: clip(d.WWN, maxField), Issue: clip(cmp.Or(d.IdentityIssue, d.Copy, d.SizeIssue), maxText),
		},
		Type: d.Type.String(), Transport: d.Transport.String(), Size: drivebay.DecimalSize(d.Size), LogicalBlockSize: int32(d.LogicalBlock),
		Bay: bayOf(s, d), Machine: machineOf(s.Machine.Hardware),
		State: d.Status.String(), Health: d.Health.String(), Findings: findings(d.Findings),
		Usage: d.Usage.String(), Removal: removal(d.Leaving), Replaces: replaces(d.Succeeds),
		Cordoned: d.Cordoned, ClaimedBy: claimedBy(d.Claim), Refusals: refusals(d), System: d.System, Content: d.Content.Kind.String(),
		PercentUsed: percentUsed(d.Wear), Capacity: n.capacity(d, was),
	}
}

func bayOf(s *drivebay.Snapshot, d *drivebay.Drive) v1alpha1.DriveBay {
	slot := d.Slot
	for i := range s.Bays { // the lights of a bay are newer than those in the drive
		if b := &s.Bays[i]; b.Bay == slot.Bay && b.Enclosure == slot.Enclosure && slot.Bay != "" {
			slot = b.Slot
		}
	}
	return v1alpha1.DriveBay{Enclosure: clip(slot.Enclosure, maxField), Name: clip(slot.Bay, maxField), HasLight: slot.Locate != "", Located: slot.Lit, FaultLit: slot.FaultLit}
}

func machineOf(h *drivebay.Hardware) v1alpha1.MachineHardware {
	if h == nil {
		return v1alpha1.MachineHardware{}
	}
	return v1alpha1.MachineHardware{
		Vendor: clip(cmp.Or(h.Vendor, h.Board.Vendor), maxField), Product: clip(cmp.Or(h.Product, h.Board.Product), maxField),
		Serial: clip(h.Serial, maxField), AssetTag: clip(h.Chassis.AssetTag, maxField),
	}
}

func findings(all []drivebay.Finding) (out []v1alpha1.DriveFinding) {
	for _, f := range all[:min(len(all), maxFindings)] {
		out = append(out, v1alpha1.DriveFinding{Code: clip(f.Code, maxWord), Severity: f.Severity.String(), Text: clip(f.Text, maxText), Advice: clip(f.Advice, maxText), Since: second(f.Since)})
	}
	return out
}

func removal(l *drivebay.Leaving) *v1alpha1.DriveRemoval {
	if l == nil {
		return nil
	}
	out := &v1alpha1.DriveRemoval{Since: second(l.Since), Why: clip(l.Why, maxText), Cause: clip(l.Cause, maxCause)}
	if p := l.Progress; p != nil {
		percent := int32(min(p.Percent(), 100))
		out.Percent, out.Total = &percent, int64(p.Total)
	}
	return out
}

func replaces(s *drivebay.Succession) *v1alpha1.DriveReplaces {
	if s == nil {
		return nil
	}
	return &v1alpha1.DriveReplaces{ID: s.Of, Against: clip(s.Against, maxCause), Taken: second(s.Taken)}
}

func claimedBy(c *drivebay.Claim) string {
	if c == nil {
		return ""
	}
	return string(c.By)
}

func refusals(d *drivebay.Drive) (out []string) {
	all := d.Refusals()
	for _, r := range all[:min(len(all), maxRefusals)] {
		out = append(out, clip(r, maxText))
	}
	return out
}

func percentUsed(w *drivebay.Wear) *int32 {
	if w == nil {
		return nil
	}
	used := int32(min(max(w.PercentUsed, 0), 255))
	return &used
}

// capacity returns the room of a drive for new volumes, none if it takes none. Until the volumes of the machine are listed it stays as it was: a
// restart of the daemon takes no room from the scheduler.
func (n node) capacity(d *drivebay.Drive, was *v1alpha1.DriveStatus) v1alpha1.DriveCapacity {
	if n.rooms == nil {
		return *was.Capacity.DeepCopy()
	}
	out := v1alpha1.DriveCapacity{Total: int64(d.Size)}
	room, known := n.rooms[d.ID]
	if !known {
		return out
	}
	if room.Group != "" {
		out.Group = &v1alpha1.DriveGroup{Name: clip(room.Group, maxField), Drives: room.Members[:min(len(room.Members), maxMembers)]}
		if room.Kind != drivebay.LocationUnknown {
			out.Group.Kind = room.Kind.String()
		}
	}
	if !d.TakesVolumes() {
		return out
	}
	free := room.Backings[drivebay.BackingPartition].Available
	for _, b := range slices.Sorted(maps.Keys(room.Backings)) {
		r := room.Backings[b]
		out.Backings = append(out.Backings, v1alpha1.BackingCapacity{Backing: string(b), Largest: int64(r.Largest), Available: int64(r.Available)})
		if room.Group != "" && b != drivebay.BackingDrive { // a group is of one kind, and takes all of the drive
			free = max(free, r.Available)
		}
	}
	out.Free = drivebay.DecimalSize(free)
	return out
}

// clip makes a text fit the schema: valid UTF-8 without control characters, at most limit bytes.
func clip(s string, limit int) string { return drivebay.PlainText(s, limit) }

// second cuts a time to what the API stores.
func second(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}
