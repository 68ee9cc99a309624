package partitions

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
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
