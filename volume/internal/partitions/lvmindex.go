package partitions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// CreatedPrefix starts the instance of a logical volume that has no instance tag. An earlier version made
// that volume; its time of creation tells it from another.
const CreatedPrefix = "created "

// InstanceOfLV returns the instance tag of a logical volume.
func InstanceOfLV(lv *lvm.LV) string {
	if is := TagOf(lv, KeyInst); is != "" {
		return is
	}
	if created := TagOf(lv, KeyCreated); created != "" {
		return CreatedPrefix + created
	}
	return ""
}

// LVOf returns the logical volume of a location; nil if the report has none, or another one of its name.
func LVOf(r *lvm.Report, l drivebay.Location) *lvm.LV { return LVIn(r.Group(l.VG), l) }

// LVIn returns the logical volume of a location in a group; nil if it is not there.
func LVIn(g *lvm.Group, l drivebay.Location) *lvm.LV {
	if g == nil {
		return nil
	}
	if lv := g.LV(l.LV); lv != nil && (l.Instance == "" || InstanceOfLV(lv) == l.Instance) {
		return lv
	}
	return nil
}

// UnreadableOf returns the drives of a location that LVM cannot read, each with the reason.
func (x *LVMIndex) UnreadableOf(l drivebay.Location, parts map[string][]Part) map[string]string {
	var out map[string]string
	put := func(drive, why string) {
		if out == nil {
			out = map[string]string{}
		}
		out[drive] = why
	}
	g := x.Group(l.VG)
	whole := g != nil && g.LV(l.LV) != nil && len(g.Missing()) == 0
	for _, id := range l.Drives {
		list, listed := parts[id]
		_, has := PVOn(list)
		switch why := x.Unreadable(id); {
		case whole && !x.withoutCopy(id):
		case listed && !has && !slices.ContainsFunc(list, nameless):
			put(id, "the drive has no partition for a physical volume any more")
		case why != "":
			put(id, why)
		case x.withoutCopy(id):
			put(id, "it cannot read the copy of the volume group's metadata there")
		}
	}
	return out
}

// UnknownSince returns since when LVM has made no report, and why; "" while its report is new enough.
func (x *LVMIndex) UnknownSince(now time.Time, lastError string) string {
	switch {
	case lastError == "":
		return ""
	case x == nil:
		return "no report of LVM could be made so far: " + lastError
	case now.Sub(x.At) > reportLate:
		return fmt.Sprintf("no report of LVM could be made since %s: %s", x.At.UTC().Format(time.RFC3339), lastError)
	}
	return ""
}

// LVMIndex is the newest report of LVM, with the drives that it covers. It is replaced, never changed.
type LVMIndex struct {
	At        time.Time
	Key       string            // of the drives that it was made for
	PVs       map[string]string // drive id -> device of its physical volume
	Report    *lvm.Report
	Suspended map[string]bool   // "group/volume" that the report before had suspended
	Unread    map[string]string // drive id -> why LVM could make no report of its physical volume
}

// ReportEvery is how old a report may become while nothing seems to change: no event shows how full a pool
// is or how far a mirror is copied.
const ReportEvery = 30 * time.Second

// reportLate is how old a report may become before its content counts as unknown: three reports could not
// be made.
const reportLate = 3*ReportEvery + ReportTime

// PVOn returns the partition of our physical volume among the partitions of a drive.
func PVOn(parts []Part) (Part, bool) {
	if i := slices.IndexFunc(parts, func(p Part) bool { return strings.HasPrefix(p.Title, ledger.PVPrefix) }); i >= 0 {
		return parts[i], true
	}
	return Part{}, false
}

// NowSuspended returns the logical volumes that the report shows as suspended.
func (x *LVMIndex) NowSuspended() map[string]bool {
	out := map[string]bool{}
	if x != nil {
		for _, g := range x.Report.Groups {
			for _, lv := range g.LVs {
				if lv.Suspended {
					out[g.Name+"/"+lv.Name] = true
				}
			}
		}
	}
	return out
}

// Members returns the drives of a group with their physical volumes' UUIDs.
func (x *LVMIndex) Members(g *lvm.Group) map[string]string {
	out := map[string]string{}
	for id, dev := range x.PVs {
		for _, p := range g.PVs {
			if p.Device == dev {
				out[id] = p.UUID
			}
		}
	}
	return out
}

// Group returns our group of a name, or nil. LVM activates nothing of an exported one, and we change none without our tag.
func (x *LVMIndex) Group(name string) *lvm.Group {
	if x == nil {
		return nil
	}
	if g := x.Report.Group(name); g != nil && slices.Contains(g.Tags, lvm.Tag) && !g.Exported {
		return g
	}
	return nil
}

// Reported returns the report; an empty one before the first.
func (x *LVMIndex) Reported() *lvm.Report {
	if x == nil {
		return &lvm.Report{}
	}
	return x.Report
}

// Lacks reports whether the report covers all of a volume's drives, LVM could read each of them, and no
// such volume is there. A damaged label or text hides a volume, it does not remove it.
func (x *LVMIndex) Lacks(l drivebay.Location) bool {
	if x == nil {
		return false
	}
	for _, id := range l.Drives {
		if x.PVs[id] == "" || x.Unreadable(id) != "" {
			return false
		}
	}
	return LVOf(x.Report, l) == nil
}

// Spoiling returns the drives that no report could be made of.
func (x *LVMIndex) Spoiling() map[string]string {
	if x == nil {
		return nil
	}
	return x.Unread
}

// Unreadable returns what keeps LVM from reading the physical volume of a drive; "" if LVM has read it, or
// the report does not cover it.
func (x *LVMIndex) Unreadable(drive string) string {
	if x == nil {
		return ""
	}
	if why := x.Unread[drive]; why != "" {
		return "its report of the drive fails: " + why
	}
	dev := x.PVs[drive]
	if dev == "" {
		return ""
	}
	switch pv, g := x.Report.On(dev); {
	case pv == nil:
		return "it finds no physical volume in the partition that holds one: the label is damaged or cannot be read, or another drive has the same"
	case pv.Unreadable(g):
		return "it cannot read the metadata of the volume group there"
	}
	return ""
}

// withoutCopy reports whether LVM knows a drive's group from its other drives only.
func (x *LVMIndex) withoutCopy(drive string) bool {
	if x == nil || x.PVs[drive] == "" {
		return false
	}
	pv, g := x.Report.On(x.PVs[drive])
	return pv != nil && g != nil && pv.NoMetadata
}

// PVEnd returns where the extents of the physical volume on a drive end in its partition; 0 if LVM shows none. Of one that is in no
// group, LVM reports the size of its device.
func (x *LVMIndex) PVEnd(drive string) uint64 {
	if pv := x.grouped(drive); pv != nil {
		return pv.DataEnd()
	}
	return 0
}

// smallerPV says how much smaller the partition of the physical volume on a drive is than LVM needs; "" if it is not.
func (x *LVMIndex) smallerPV(drive string) string {
	if pv := x.grouped(drive); pv != nil && pv.DeviceSize < pv.DataEnd() {
		return "the partition of the physical volume is smaller than before: " + SmallerText(pv.DeviceSize, pv.DataEnd())
	}
	return ""
}

// grouped returns the physical volume on a drive if it is in a group.
func (x *LVMIndex) grouped(drive string) *lvm.PV {
	if x == nil || x.PVs[drive] == "" {
		return nil
	}
	if pv, g := x.Report.On(x.PVs[drive]); g != nil {
		return pv
	}
	return nil
}

// Merge replaces one group by that of a newer report.
func (x *LVMIndex) Merge(l drivebay.Location, r *lvm.Report, parts map[string][]Part) *LVMIndex {
	next := &LVMIndex{Report: &lvm.Report{}, PVs: map[string]string{}}
	if x != nil {
		*next = *x
		next.PVs, next.Report = maps.Clone(x.PVs), &lvm.Report{Free: x.Report.Free}
		for _, g := range x.Report.Groups {
			if g.Name != l.VG {
				next.Report.Groups = append(next.Report.Groups, g)
			}
		}
	}
	if g := r.Group(l.VG); g != nil {
		next.Report.Groups = append(next.Report.Groups, *g)
		next.Unread = maps.Clone(next.Unread)
		maps.DeleteFunc(next.Unread, func(id, _ string) bool { return slices.Contains(l.Drives, id) })
	}
	for _, id := range l.Drives {
		if p, ok := PVOn(parts[id]); ok {
			next.PVs[id] = p.Dev
		}
	}
	return next
}

// The report of LVM comes from one command over all physical volumes. One drive that makes the command
// fail must not hide the others: after a failure each drive is read alone, and then each group on the
// drives that answer.

const (
	// ReportTime bounds the one command that reads all physical volumes, AloneTime the
	// one that reads a single drive or group.
	ReportTime = 20 * time.Second
	AloneTime  = 5 * time.Second
	// AloneAtOnce is how many drives are read at the same time.
	AloneAtOnce = 4
)

const KeyCreated = "created"

const KeyInst = "instance" // tells it from another one of its name

// TagOf returns one of them, without a map: each listing calls it for every logical volume.
func TagOf(lv *lvm.LV, key string) (value string) {
	for _, t := range lv.Tags {
		if !strings.HasPrefix(t, lvm.Tag+":"+key+"=") {
			continue
		}
		if k, v, ok := lvm.DecodeTag(t); ok && k == key {
			value = v
		}
	}
	return value
}
