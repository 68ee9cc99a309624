package inventory

import (
	"cmp"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// UsedAt returns where the volume is in use. A replicated volume always is: DRBD has its piece open.
func UsedAt(v *drivebay.Volume) string {
	at := ""
	switch r := v.Replication; {
	case r == nil:
	case r.Ended:
		at = "not decided upon (" + r.Why() + ")"
	default:
		at = "replicated to " + r.Peer.String()
	}
	for _, p := range v.Publications {
		if !p.Staging {
			return "published at " + p.Path
		}
		at = "staged at " + p.Path
	}
	return at
}

// Copyable reports whether a volume that is not in use is whole. A mount that failed has left
// it whole.
func Copyable(v *drivebay.Volume) bool {
	state := v.State()
	if state.Status == drivebay.CSIFailed {
		state.Status = state.Before
	}
	return state.Status == drivebay.CSICreated || state.Status == drivebay.CSIVolumeReady || state.Status == drivebay.CSIPublished || state.Status == drivebay.CSIResized
}

// Moved reports whether a volume is on its new drive, whatever is left on the old one.
func Moved(r *drivebay.VolumeRecord) bool {
	m := partitions.MoveOf(r)
	return m != nil && r.Volume.Location.Partition == m.To.Partition
}

// ClassOf returns the class of a volume. For a volume that was found again, it is what can be
// seen of it.
func ClassOf(v *drivebay.Volume) drivebay.Class {
	c, err := drivebay.ParseClass(v.Parameters)
	if err != nil {
		c, _ = drivebay.ParseClass(nil)
	}
	c.FSType, c.Encryption, c.Backing = cmp.Or(v.FSType, c.FSType), "", drivebay.BackingPartition
	if v.Encrypted() {
		c.Encryption = drivebay.EncryptionLUKS2
	}
	if v.Location.Kind == drivebay.LocationDrive {
		c.Backing = drivebay.BackingDrive
	}
	return c
}
