package condition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// PoolLow is the usage of a thin pool, in percent, from which on it is reported: late
// enough to avoid false alarms, early enough to extend the pool.
const PoolLow = 90

const (
	extendData = "Extend the thin pool, or delete volumes or snapshots of it; writes wait or fail until then."
	repairPV   = "`pvck` on the partition tells the damage; `pvck --repair` or `vgcfgrestore` from the kept metadata mends it. Do not run `pvcreate` or `wipefs` there. `drivebay volume forget {volume}` gives it up."
	extendMeta = "`drivebay heal {volume}` extends the metadata of the thin pool if its group has room; if not, delete snapshots or volumes of it at once: a pool that runs out of it may need a repair."
)

var lvmRules = []Rule{
	{
		Section: OnLVM, Reason: "PhysicalVolumeUnreadable", Severity: drivebay.SeverityInaccessible,
		When: "LVM cannot read the physical volume of the drive, and the volume is not staged; of a mirror, of all its drives",
		Says: "what LVM cannot read", Next: repairPV,
		Source: "lvm2 2.03.16: a physical volume with a damaged label is not listed, one with damaged metadata has no group",
		check: func(l *look) *hit {
			if legs := l.unreadable(); l.lost(legs) && !l.LV.InUse {
				return say(legs, "LVM cannot read the physical volume of drive %s: %s", drivebay.PlainText(legs[0].id, maxWord), l.LV.Unreadable[legs[0].id])
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "PhysicalVolumeUnreadable", Severity: drivebay.SeverityDegraded,
		When: "LVM cannot read the physical volume of the drive, and the volume is staged: what is active goes on; or a mirror has another drive",
		Says: "what LVM cannot read", Next: "Save the data while the volume is staged: it cannot be staged again. `pvck` on the partition tells the damage.",
		Source: "lvm2 2.03.16: a physical volume with a damaged label is not listed, one with damaged metadata has no group",
		check: func(l *look) *hit {
			if legs := l.unreadable(); len(legs) > 0 && (!l.lost(legs) || l.LV.InUse) {
				return say(legs, "LVM cannot read the physical volume of drive %s: %s", drivebay.PlainText(legs[0].id, maxWord), l.LV.Unreadable[legs[0].id])
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "LogicalVolumeUnknown", Severity: drivebay.SeverityDegraded,
		When: "no report of LVM could be made for a while: how the logical volume is, is not known",
		Says: "since when, and why", Next: "Silence is not health: see why `lvm fullreport` fails, the kernel log and the drives say more.",
		Source: "what is unknown is reported as unknown",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.Unknown == "" {
				return nil
			}
			return say(nil, "%s", l.LV.Unknown)
		},
	},
	{
		Section: OnLVM, Reason: "PhysicalVolumeMissing", Severity: drivebay.SeverityInaccessible,
		When: "the volume group misses a physical volume; of a mirror, one for each drive",
		Says: "which physical volumes LVM misses", Next: "Bring the drive back; if it is there, see with `pvck` what became of its label. Do not run `vgreduce --removemissing`.",
		Source: "vgs(8): attribute partial; KEP-1432, use cases",
		check: func(l *look) *hit {
			if pvs := l.missingPVs(); len(pvs) > 0 && (!l.Volume.Location.Mirrored() || len(pvs) >= len(l.on)) {
				return say(nil, "the volume group misses physical volumes: %s", strings.Join(pvs, ", "))
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "PhysicalVolumeMissing", Severity: drivebay.SeverityDegraded,
		When: "the volume group of a mirror misses a physical volume and has another",
		Says: "which physical volumes LVM misses", Next: "Bring the drive back, or lead it out (`drivebay replace DRIVE`): a new leg is then made on a spare drive. Another failure now loses the volume.",
		Source: "vgs(8): attribute partial; lvmraid(7), device failure",
		check: func(l *look) *hit {
			if pvs := l.missingPVs(); len(pvs) > 0 && l.Volume.Location.Mirrored() && len(pvs) < len(l.on) {
				return say(nil, "the mirror's volume group misses a physical volume: %s", strings.Join(pvs, ", "))
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "PartialActivation", Severity: drivebay.SeverityInaccessible,
		When: "the logical volume is active with a part of it on no device; not for mirrors",
		Says: "that reads of that part fail", Next: "Stop writing to the volume and bring the missing drive back.",
		Source: "lvs(8): volume health partial; lvmraid(7), activation modes",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.Partial || l.Volume.Location.Mirrored() {
				return nil
			}
			return say(nil, "a part of the logical volume is on no device: reading it fails")
		},
	},
	{
		Section: OnLVM, Reason: "PartialActivation", Severity: drivebay.SeverityDegraded,
		When: "a mirror is active without one of its legs",
		Says: "that one leg serves alone", Next: "Bring the drive back, or lead it out (`drivebay replace DRIVE`): a new leg is then made on a spare drive. Another failure now loses the volume.",
		Source: "lvs(8): volume health partial; lvmraid(7), activation modes",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.Partial || !l.Volume.Location.Mirrored() {
				return nil
			}
			return say(nil, "the mirror runs without one of its legs")
		},
	},
	{
		Section: OnLVM, Reason: "LogicalVolumeInactive", Severity: drivebay.SeverityInaccessible,
		When: "the volume is staged and its logical volume is not active",
		Says: "that the device is not there", Next: "`drivebay heal {volume}` activates it.",
		Source: "lvs(8): lv_attr, state",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.Inactive || l.Volume.Rest() == drivebay.CSICreated {
				return nil
			}
			return say(nil, "the logical volume is not active while the volume is staged")
		},
	},
	{
		Section: OnLVM, Reason: "LogicalVolumeSuspended", Severity: drivebay.SeverityInaccessible,
		When: "device-mapper holds the logical volume suspended from one round to the next",
		Says: "that every read and write waits", Next: "See whether an lvm command hangs; if none runs, `dmsetup resume` lets the volume go on.",
		Source: "lvs(8): lv_attr, state; dmsetup(8), suspend",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.Suspended {
				return nil
			}
			return say(nil, "the logical volume is suspended: every read and write waits")
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolFailed", Severity: drivebay.SeverityInaccessible,
		When: "the thin pool has failed",
		Says: "that the pool has to be repaired", Next: "Unstage the volumes of the pool and run `lvconvert --repair` on it.",
		Source: "lvs(8): volume health failed; lvmthin(7), metadata check and repair",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.PoolFailed {
				return nil
			}
			return say(nil, "the thin pool %s has failed", l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolOutOfDataSpace", Severity: drivebay.SeverityInaccessible,
		When: "the thin pool has no data space left",
		Says: "that new writes wait or fail", Next: extendData,
		Source: "lvmthin(7), data space exhaustion; KEP-1432, OutOfCapacity",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.OutOfData && below(l.LV.DataPercent, 100) {
				return nil
			}
			return say(nil, "the thin pool %s has no data space left", l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolLowOnDataSpace", Severity: drivebay.SeverityDegraded,
		When: fmt.Sprintf("%d %% of the thin pool's data space are used, or more", PoolLow),
		Says: "how full it is", Next: extendData,
		Source: "lvmthin(7), data space exhaustion; KEP-1432, OutOfCapacity",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.OutOfData || below(l.LV.DataPercent, PoolLow) || !below(l.LV.DataPercent, 100) {
				return nil
			}
			return say(nil, "%d %% of the data space of the thin pool %s are used", int(*l.LV.DataPercent), l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolOutOfMetadataSpace", Severity: drivebay.SeverityInaccessible,
		When: "the thin pool has no metadata space left, or holds its metadata read-only",
		Says: "that the pool takes no more writes", Next: "Unstage the volumes of the pool, extend its metadata and run `lvconvert --repair` on it.",
		Source: "lvmthin(7), metadata space exhaustion; lvs(8): volume health metadata_read_only",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.MetadataLocked && below(l.LV.MetadataPercent, 100) {
				return nil
			}
			return say(nil, "the thin pool %s can write no metadata", l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolLowOnMetadataSpace", Severity: drivebay.SeverityDegraded,
		When: fmt.Sprintf("%d %% of the thin pool's metadata space are used, or more", PoolLow),
		Says: "how full it is", Next: extendMeta,
		Source: "lvmthin(7), metadata space exhaustion",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.MetadataLocked || below(l.LV.MetadataPercent, PoolLow) || !below(l.LV.MetadataPercent, 100) {
				return nil
			}
			return say(nil, "%d %% of the metadata space of the thin pool %s are used", int(*l.LV.MetadataPercent), l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "MirrorOutOfSync", Severity: drivebay.SeverityDegraded,
		When: "the legs of a mirror are not all in use and in sync",
		Says: "how far the synchronisation is, or that a leg is left out", Next: "Wait for the synchronisation; a leg that is left out comes back with `drivebay heal {volume}` once its drive is sound.",
		Source: "lvmraid(7), synchronization; lvs(8): volume health refresh needed",
		check: func(l *look) *hit {
			switch {
			case inSync(&l.Facts):
				return nil
			case l.LV.RefreshNeeded:
				return say(nil, "a leg of the mirror has failed writes and is left out")
			}
			return say(nil, "the mirror is %d %% in sync: only one drive has everything", int(*l.LV.SyncPercent))
		},
	},
	{
		Section: OnLVM, Reason: "MirrorLegStale", Severity: drivebay.SeverityInaccessible,
		When: "the leg of a mirror with the newest data is not there, or it is not known which leg that is",
		Says: "which drive has the newest data, or why that is not known", Next: "Put the drive with the newest data back. If it is lost for good, `drivebay volume accept-loss {volume} --yes` goes on with the leg that is there; what was written since is lost.",
		Source: "drivers/md/dm-raid.c: a leg that missed writes is activated like any other",
		check:  (*look).staleLeg,
	},
	{
		Section: OnLVM, Reason: "MirrorMismatch", Severity: drivebay.SeverityDegraded,
		When: "the last check found places where the legs of a mirror differ",
		Says: "how many", Next: "Compare the data with a copy; `lvchange --syncaction repair` makes the legs alike but cannot know which one was right.",
		Source: "lvmraid(7), scrubbing; lvs(8): volume health mismatches exist",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.Mismatches == 0 {
				return nil
			}
			return say(nil, "the legs of the mirror differ in %d places", l.LV.Mismatches)
		},
	},
}

// below reports whether a percentage is below a limit or not known: a number that was
// not read causes no finding.
func below(percent *float64, limit float64) bool { return percent == nil || *percent < limit }

// unreadable returns the drives whose physical volume LVM cannot read.
func (l *look) unreadable() []leg {
	if l.LV == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.on), func(g leg) bool { return l.LV.Unreadable[g.id] == "" })
}

func (l *look) missingPVs() []string {
	if l.LV == nil {
		return nil
	}
	return l.LV.MissingPVs
}
