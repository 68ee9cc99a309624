package partitions

import (
	"slices"

	"github.com/drivebay/drivebay"
)

// The type-specific attribute bits of a partition hold its wipe policy and drive class, so that
// both survive the loss of the records. Logical volumes hold them in tags.
var (
	AttributeWipes   = []drivebay.Wipe{"", drivebay.WipeNone, drivebay.WipeDiscard, drivebay.WipeZero}
	AttributeClasses = []string{"", "hdd", "ssd", "nvme"}
)

// AttributesOf encodes the parameters of a volume; 0 means that they are unknown.
func AttributesOf(v *drivebay.Volume) uint16 {
	wipe := slices.Index(AttributeWipes, drivebay.Wipe(v.Parameters[drivebay.ParameterWipe]))
	class := slices.Index(AttributeClasses, v.Parameters[drivebay.ParameterClass])
	if wipe <= 0 || class < 0 {
		return 0
	}
	return uint16(class<<2 | wipe)
}
