package partitions

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// The type-specific attribute bits of a partition hold its wipe policy and drive class, so that
// both survive the loss of the records. Logical volumes hold them in tags.
var (
	AttributeWipes   = []drivebay.Wipe{"", drivebay.WipeNone, drivebay.WipeDiscard, drivebay.WipeZero}
	AttributeClasses = []string{"", "hdd", "ssd", "nvme"}
)

// AttributeReplicated is the attribute of a partition with metadata of DRBD at its end that are in use, KeyReplicated the tag of such
// a logical volume. Where the records are lost, the bytes alone do not say it: they may be data of the user of a block volume.
const (
	AttributeReplicated = 1 << 15
	KeyReplicated       = "replicated"
)

// AttributeRemoving is the attribute of an unfinished partition whose removal has begun: it was finished before, and can have data. A logical
// volume has a tag.
const AttributeRemoving = 1 << 14

// AttributeMoved is the attribute of an unfinished partition that a volume has left: the volume was copied to another partition, which has its
// name since. What is in it is old from then on.
const AttributeMoved = 1 << 13

// IsOldCopy reports whether a partition is what a move has left of a volume.
func IsOldCopy(p gpt.Partition) bool {
	return p.Type == ledger.TypeMaking && p.TypeAttributes&AttributeMoved != 0
}

// OldCopy is IsOldCopy for the partition of a drive with a GUID, by the table as it was last read or written. Ledger.Mu is held.
func (e *Catalog) OldCopy(drive, guid string) bool {
	return slices.ContainsFunc(e.Tables[drive], func(p gpt.Partition) bool { return IsOldCopy(p) && strings.EqualFold(p.GUID, guid) })
}

// Marked reports whether the piece of a volume is marked as replicated, as last listed.
func (e *Catalog) Marked(v *drivebay.Volume) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	if v.Location.OnLVM() {
		if e.Index.LVM == nil {
			return false
		}
		lv := LVOf(e.Index.LVM.Report, v.Location)
		return lv != nil && TagOf(lv, KeyReplicated) != ""
	}
	return len(v.Location.Drives) > 0 && slices.ContainsFunc(e.Tables[v.Location.Drives[0]], func(p gpt.Partition) bool {
		return strings.EqualFold(p.GUID, v.Location.Partition) && p.TypeAttributes&AttributeReplicated != 0
	})
}

// AttributesOf encodes what is known of a volume; 0 means that nothing is.
func AttributesOf(v *drivebay.Volume) (attributes uint16) {
	if v.Replicated() {
		attributes = AttributeReplicated
	}
	wipe := slices.Index(AttributeWipes, drivebay.Wipe(v.Parameters[drivebay.ParameterWipe]))
	class := slices.Index(AttributeClasses, v.Parameters[drivebay.ParameterClass])
	if wipe <= 0 || class < 0 {
		return attributes
	}
	return attributes | uint16(class<<2|wipe)
}
