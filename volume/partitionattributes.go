package volume

import (
	"slices"

	"github.com/drivebay/drivebay"
)

// The type-specific attribute bits of a partition hold its wipe policy and drive class, so that
// both survive the loss of the records. Logical volumes hold them in tags.
var (
	attributeWipes   = []drivebay.Wipe{"", drivebay.WipeNone, drivebay.WipeDiscard, drivebay.WipeZero}
	attributeClasses = []string{"", "hdd", "ssd", "nvme"}
)

// attributesOf encodes the parameters of a volume; 0 means that they are unknown.
func attributesOf(v *drivebay.Volume) uint16 {
	wipe := slices.Index(attributeWipes, drivebay.Wipe(v.Parameters[drivebay.ParameterWipe]))
	class := slices.Index(attributeClasses, v.Parameters[drivebay.ParameterClass])
	if wipe <= 0 || class < 0 {
		return 0
	}
	return uint16(class<<2 | wipe)
}

// parametersFrom decodes attributesOf; nil means that the partition has none.
func parametersFrom(attributes uint16, v *drivebay.Volume) map[string]string {
	wipe, class := attributes&3, attributes>>2
	if wipe == 0 || int(class) >= len(attributeClasses) {
		return nil
	}
	out := parametersOf(drivebay.Class{Backing: backingOf(v.Location.Kind), Wipe: attributeWipes[wipe], FSType: v.FSType})
	if class > 0 {
		out[drivebay.ParameterClass] = attributeClasses[class]
	}
	if v.LUKSUUID != "" {
		out[drivebay.ParameterEncryption] = drivebay.EncryptionLUKS2
	}
	return out
}
