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
	extendData = "Add space to the thin pool with `drivebay heal {volume}`, or delete volumes or snapshots in it. In a full pool, writes to new blocks wait or fail."
	repairPV   = "Check the partition with `pvck`; repair it with `pvck --repair` or `vgcfgrestore` (backups: /var/lib/drivebay/lvm). Do not run `pvcreate` or `wipefs`. Give up: `drivebay volume forget {volume} --yes`."
	// lvconvert renames the metadata that it replaces, and leaves them to the operator (lvmthin(7), metadata check and repair).
	repairPool = "run `lvconvert --repair` on the pool, and `lvremove` its old metadata (`_meta0`)."
	extendMeta = "Extend the metadata with `drivebay heal {volume}`. If the volume group has no room, delete snapshots or volumes of the pool now: a pool without metadata space may need a repair."
)

var lvmRules = []Rule{
	{
		Section: OnLVM, Reason: "PhysicalVolumeUnreadable", Severity: drivebay.SeverityInaccessible,
		When: "LVM cannot read the physical volume on the drive (of a mirror: on all its drives), and the volume is not staged",
		Says: "what LVM cannot read", Next: repairPV,
		Source: "lvm2 2.03.16: LVM does not list a physical volume with a damaged label, and shows one with damaged metadata without a group",
		check: func(l *look) *hit {
			if legs := l.unreadable(); l.lost(legs) && !l.LV.InUse {
				return say(legs, "LVM cannot read the physical volume on drive %s: %s", drivebay.PlainText(legs[0].id, maxWord), l.LV.Unreadable[legs[0].id])
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "PhysicalVolumeUnreadable", Severity: drivebay.SeverityDegraded,
		When: "LVM cannot read the physical volume on the drive, but the volume is staged and remains active, or a mirror has another drive",
		Says: "what LVM cannot read", Next: "Copy the data while the volume is staged: it cannot be staged again. Check the partition with `pvck`.",
		Source: "lvm2 2.03.16: LVM does not list a physical volume with a damaged label, and shows one with damaged metadata without a group",
		check: func(l *look) *hit {
			if legs := l.unreadable(); len(legs) > 0 && (!l.lost(legs) || l.LV.InUse) {
				return say(legs, "LVM cannot read the physical volume on drive %s: %s", drivebay.PlainText(legs[0].id, maxWord), l.LV.Unreadable[legs[0].id])
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "LogicalVolumeUnknown", Severity: drivebay.SeverityDegraded,
		When: "LVM has made no report for a while, so the state of the logical volume is unknown",
		Says: "since when, and why", Next: "The volume may have faults that are not shown. Check why `lvm fullreport` fails, the kernel log, and the drives (`drivebay drives`).",
		Source: "an unknown state is reported as unknown, not as healthy",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.Unknown == "" {
				return nil
			}
			return say(nil, "%s", l.LV.Unknown)
		},
	},
	{
		Section: OnLVM, Reason: "PhysicalVolumeMissing", Severity: drivebay.SeverityInaccessible,
		When: "a physical volume of the volume group is missing; of a mirror: one for each drive",
		Says: "which physical volumes are missing", Next: "Put the drive back. If it is present, check the label of its partition with `pvck`. Do not run `vgreduce --removemissing`: it removes volumes.",
		Source: "vgs(8): attribute partial; KEP-1432, use cases",
		check: func(l *look) *hit {
			if pvs := l.missingPVs(); len(pvs) > 0 && (!l.Volume.Location.Mirrored() || len(pvs) >= len(l.on)) {
				return say(nil, "physical volumes of the volume group are missing: %s", strings.Join(pvs, ", "))
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "PhysicalVolumeMissing", Severity: drivebay.SeverityDegraded,
		When: "a physical volume of a mirror is missing, and another is present",
		Says: "which physical volumes are missing", Next: "Another drive failure now loses the volume. Put the drive back, or run `drivebay replace DRIVE`: drivebay then creates a new leg on another drive.",
		Source: "vgs(8): attribute partial; lvmraid(7), device failure",
		check: func(l *look) *hit {
			if pvs := l.missingPVs(); len(pvs) > 0 && l.Volume.Location.Mirrored() && len(pvs) < len(l.on) {
				return say(nil, "a physical volume of the mirror is missing: %s", strings.Join(pvs, ", "))
			}
			return nil
		},
	},
	{
		Section: OnLVM, Reason: "PartialActivation", Severity: drivebay.SeverityInaccessible,
		When: "the logical volume, not a mirror, is active although the device of a part of it is missing",
		Says: "that reads of that part fail", Next: "Stop the programs that write to the volume, and put the missing drive back.",
		Source: "lvs(8): volume health partial; lvmraid(7), activation modes",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.Partial || l.Volume.Location.Mirrored() {
				return nil
			}
			return say(nil, "the device of a part of the logical volume is missing: reads of that part fail")
		},
	},
	{
		Section: OnLVM, Reason: "PartialActivation", Severity: drivebay.SeverityDegraded,
		When: "a mirror is active without one of its legs",
		Says: "that the mirror has only one leg", Next: "Another drive failure now loses the volume. Put the drive back, or run `drivebay replace DRIVE`: drivebay then creates a new leg on another drive.",
		Source: "lvs(8): volume health partial; lvmraid(7), activation modes",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.Partial || !l.Volume.Location.Mirrored() {
				return nil
			}
			return say(nil, "the mirror is active without one of its legs")
		},
	},
	{
		Section: OnLVM, Reason: "LogicalVolumeInactive", Severity: drivebay.SeverityInaccessible,
		When: "the volume is staged and its logical volume is not active",
		Says: "that the device is missing", Next: "Activate the logical volume with `drivebay heal {volume}`.",
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
		When: "the logical volume is suspended in two checks in a row",
		Says: "that every read and write waits", Next: "Check whether an LVM command hangs. If none is running, run `drivebay heal {volume}`.",
		Source: "lvs(8): lv_attr, state; dmsetup(8), suspend",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.Suspended {
				return nil
			}
			return say(nil, "the logical volume is suspended: every read and write waits")
		},
	},
	{
		Section: OnLVM, Reason: "LogicalVolumeChanged", Severity: drivebay.SeverityDegraded,
		When: "another program made the logical volume read-only, gave it a cache or another type, or the thin pool of a block volume does not zero new blocks",
		Says: "what was changed, and the command that undoes it", Next: "Run the command, unless the change is intended.",
		Source: "lvs(8): lv_attr, permissions, zero; lvchange(8)",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.Changed == "" {
				return nil
			}
			return say(nil, "another program changed the logical volume: %s", l.LV.Changed)
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolFailed", Severity: drivebay.SeverityInaccessible,
		When: "the thin pool has failed",
		Says: "which pool has failed", Next: "Stop the pods that use volumes of the pool, so that these are unstaged. Then " + repairPool,
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
		Says: "which pool is full", Next: extendData,
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
		When: fmt.Sprintf("at least %d %% of the data space of the thin pool is used", PoolLow),
		Says: "how full it is", Next: extendData,
		Source: "lvmthin(7), data space exhaustion; KEP-1432, OutOfCapacity",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.OutOfData || below(l.LV.DataPercent, PoolLow) || !below(l.LV.DataPercent, 100) {
				return nil
			}
			return say(nil, "%d %% of the data space of the thin pool %s is used", int(*l.LV.DataPercent), l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolOutOfMetadataSpace", Severity: drivebay.SeverityInaccessible,
		When: "the thin pool has no metadata space left, or its metadata is read-only",
		Says: "that the pool accepts no more writes", Next: "Stop the pods that use volumes of the pool, so that these are unstaged. Extend the pool with `drivebay heal {volume}`, " + repairPool,
		Source: "lvmthin(7), metadata space exhaustion; lvs(8): volume health metadata_read_only",
		check: func(l *look) *hit {
			if l.LV == nil || !l.LV.MetadataLocked && below(l.LV.MetadataPercent, 100) {
				return nil
			}
			return say(nil, "the thin pool %s cannot write its metadata", l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "ThinPoolLowOnMetadataSpace", Severity: drivebay.SeverityDegraded,
		When: fmt.Sprintf("at least %d %% of the metadata space of the thin pool is used", PoolLow),
		Says: "how full it is", Next: extendMeta,
		Source: "lvmthin(7), metadata space exhaustion",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.MetadataLocked || below(l.LV.MetadataPercent, PoolLow) || !below(l.LV.MetadataPercent, 100) {
				return nil
			}
			return say(nil, "%d %% of the metadata space of the thin pool %s is used", int(*l.LV.MetadataPercent), l.Volume.Location.Pool)
		},
	},
	{
		Section: OnLVM, Reason: "MirrorOutOfSync", Severity: drivebay.SeverityDegraded,
		When: "a leg of the mirror is not in sync, or not in use",
		Says: "the progress of the synchronization, or that a leg has failed", Next: "Wait until the mirror is in sync: until then only one drive has all data. If a leg has failed, replace its drive or repair the connection, and run `drivebay heal {volume}`.",
		Source: "lvmraid(7), synchronization; lvs(8): volume health refresh needed",
		check: func(l *look) *hit {
			switch {
			case inSync(&l.Facts):
				return nil
			case l.LV.RefreshNeeded:
				return say(nil, "a leg of the mirror failed a write and is not in use")
			}
			return say(nil, "the mirror is %d %% in sync: only one drive has all data", int(*l.LV.SyncPercent))
		},
	},
	{
		Section: OnLVM, Reason: "MirrorLegStale", Severity: drivebay.SeverityInaccessible,
		When: "the leg of a mirror that has the newest data is missing, or it is unknown which leg has it",
		Says: "which drive has the newest data, or why that is unknown", Next: putBackNewest,
		Source: "drivers/md/dm-raid.c: the kernel activates a leg that missed writes like any other leg",
		check:  (*look).staleLeg,
	},
	{
		Section: OnLVM, Reason: "MirrorMismatch", Severity: drivebay.SeverityDegraded,
		When: "the last check found blocks in which the legs of the mirror differ",
		Says: "how many", Next: "Files in these blocks may be damaged. Compare the data with a copy. `lvchange --syncaction repair` makes the legs equal, but may keep the wrong version.",
		Source: "lvmraid(7), scrubbing; lvs(8): volume health mismatches exist",
		check: func(l *look) *hit {
			if l.LV == nil || l.LV.Mismatches == 0 {
				return nil
			}
			return say(nil, "the legs of the mirror differ in %d blocks", l.LV.Mismatches)
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
