package groups

import (
	"cmp"
	"slices"

	"github.com/drivebay/drivebay"
)

// WipeOf returns the most thorough wipe of what the volumes that depend on some logical volumes leave elsewhere.
func (h *VolumeGroup) WipeOf(lvs ...string) drivebay.Wipe {
	most := drivebay.WipeNone
	for _, r := range h.Dependents(lvs) {
		switch w := RemainsWipe(&r.Volume); {
		case w == drivebay.WipeZero, most == drivebay.WipeNone:
			most = w
		}
	}
	if slices.ContainsFunc(h.Snaps, func(r *drivebay.SnapshotRecord) bool { return slices.Contains(lvs, r.Snapshot.Location.Pool) }) && most == drivebay.WipeNone {
		return WipeOf(&drivebay.Volume{}) // the snapshot's source may have been removed
	}
	return most
}

// WipeOf returns how a volume's data is wiped. For a volume that was found again the
// promised wipe may be unknown: its data is discarded. A wipe of another version of drivebay is as thorough as there is one.
func WipeOf(v *drivebay.Volume) drivebay.Wipe {
	switch w := cmp.Or(drivebay.Wipe(v.Parameters[drivebay.ParameterWipe]), drivebay.WipeDiscard); w {
	case drivebay.WipeNone, drivebay.WipeDiscard:
		return w
	}
	return drivebay.WipeZero
}

// RemainsWipe returns how data are wiped that a volume leaves where it is not any more. With an encrypted volume the keys are there: a
// passphrase that was changed since opens them, and the deletion of the volume overwrites only its own.
func RemainsWipe(v *drivebay.Volume) drivebay.Wipe {
	if w := WipeOf(v); w != drivebay.WipeNone || !v.Encrypted() {
		return w
	}
	return drivebay.WipeDiscard
}
