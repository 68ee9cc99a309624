package condition

import (
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/units"
)

const (
	replace     = "The data may be lost at any time. Replace the drive with `drivebay replace {drive}`, which moves its volumes first. `drivebay drive show {drive}` shows the fault."
	restoreSize = "drivebay stages and writes nothing there until the size is restored. Remove a hidden area (`hdparm -N`), connect the drive without a USB bridge or RAID controller, or clone it to a full-size drive."
	putBack     = "Put the drive back, or check the cable and the power of its bay. The volume can be used again when the drive is back."
)

var driveRules = []Rule{
	{
		Section: OnDrives, Reason: "DiskRemoved", Severity: drivebay.SeverityInaccessible,
		When: "a complete listing of the machine lacks the drive; of a mirror: all its drives",
		Says: "that the drive is absent", Next: putBack,
		Source: kepCodes + "; sysfs: the kernel has removed the device",
		check: func(l *look) *hit {
			if !l.lost(l.missing) || l.remote() {
				return nil
			}
			return say(l.missing, "the drive is absent from the machine")
		},
	},
	{
		Section: OnDrives, Reason: "DiskRemoved", Severity: drivebay.SeverityDegraded,
		When: "a drive of a mirror is absent, and another is present; or that of a replicated volume which is in use here, and the peer has its data",
		Says: "that the drive is absent, and where the data are", Next: "Another drive failure now loses the volume. Put the drive back, or replace it: `drivebay replace {drive}`.",
		Source: kepCodes + "; csi-baremetal volume health proposal, use cases",
		check: func(l *look) *hit {
			switch lost := l.lost(l.missing); {
			case lost && l.remote():
				return say(l.missing, "the drive is absent from the machine; the volume uses the data of its peer (docs/replication.md, When a drive fails)")
			case lost || len(l.missing) == 0:
				return nil
			}
			return say(l.missing, "a drive of the mirror is absent from the machine; the mirror uses the other drive")
		},
	},
	{
		Section: OnDrives, Reason: "DiskFailure", Severity: drivebay.SeverityInaccessible,
		When: "the kernel has given up the drive, and no other drive has a copy",
		Says: "that the drive cannot be reached, and its worst finding", Next: "Reseat the drive. If it does not come back, replace it (`drivebay replace {drive}`) and restore the volume from a copy.",
		Source: kepCodes + "; Linux SCSI error handling sets a device offline when every reset has failed; drivers/nvme sets a controller dead; a drive with a capacity of 0 does not answer",
		check: func(l *look) *hit {
			if !l.unreachable() {
				return nil
			}
			return say(l.dead, "the kernel has given up the drive: %s", worstFindings(l.dead))
		},
	},
	{
		Section: OnDrives, Reason: "DiskFailure", Severity: drivebay.SeverityDegraded,
		When: "a drive is BAD, but can still be reached, or another drive of the mirror has a copy",
		Says: "the worst finding on the drive", Next: replace,
		Source: kepCodes + "; " + seedCtl + ".1, Health != GOOD",
		check: func(l *look) *hit {
			legs := l.bad
			if l.unreachable() { // the rule above reports those
				legs = slices.DeleteFunc(slices.Clone(legs), func(g leg) bool { return slices.Contains(l.dead, g) })
			}
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the drive is BAD: %s", worstFindings(legs))
		},
	},
	{
		Section: OnDrives, Reason: "DiskDegrading", Severity: drivebay.SeverityDegraded,
		When: "a drive is SUSPECT",
		Says: "the worst finding on the drive", Next: "Make sure that the data has a copy, and plan the replacement of the drive. `drivebay drive show {drive}` shows the cause.",
		Source: kepCodes + "; " + seedCtl + ".1, Health != GOOD",
		check: func(l *look) *hit {
			if len(l.suspect) == 0 {
				return nil
			}
			return say(l.suspect, "the drive is SUSPECT: %s", worstFindings(l.suspect))
		},
	},
	{
		Section: OnDrives, Reason: "HealthUnknown", Severity: drivebay.SeverityDegraded,
		When: "a drive does not answer, or it is unknown whether the drive is present",
		Says: "why the health is unknown", Next: "The drive may fail without warning. Read it again with `drivebay refresh`, and check the kernel log.",
		Source: seedCtl + ".1, Health != GOOD",
		check: func(l *look) *hit {
			if len(l.unknown) == 0 {
				return nil
			}
			return say(l.unknown, "the health of the drive is unknown: %s", worstFindings(l.unknown))
		},
	},
	{
		Section: OnDrives, Reason: "IdentityConflict", Severity: drivebay.SeverityDegraded,
		When: "a drive cannot be distinguished from another one: their serials or world-wide names are equal or empty",
		Says: "which drives are alike", Next: "drivebay writes to neither, and moves, expands or removes nothing there. Pull one of the two. If the other is still not identified, pull it, `drivebay forget` the -at- ids, and put it back.",
		Source: "a write to the wrong drive destroys data",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.IdentityIssue != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the drive cannot be distinguished from others: %s", legs[0].drive.IdentityIssue)
		},
	},
	{
		Section: OnDrives, Reason: "DriveCopied", Severity: drivebay.SeverityDegraded,
		When: "another drive has the same partition table or physical volume: one drive is a copy of the other",
		Says: "the other drive, and what both have", Next: "Mounted volumes stay in use; drivebay writes nothing else to either drive. Find out which drive is the copy, then run `wipefs --all` on it, or pull it and run `drivebay forget` for it.",
		Source: "lvm2 2.03.16 uses one of two equal physical volumes, by its device name",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.Copy != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "%s", legs[0].drive.Copy)
		},
	},
	{
		Section: OnDrives, Reason: "DriveShrank", Severity: drivebay.SeverityDegraded,
		When: "a drive has fewer bytes than before, or than its partition table needs",
		Says: "both sizes", Next: restoreSize,
		Source: "Linux rejects the GPT of a larger drive (block/partitions/efi.c, is_gpt_valid) and fails reads and writes beyond the end",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.SizeIssue != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the drive shrank: %s", legs[0].drive.SizeIssue)
		},
	},
	{
		Section: OnDrives, Reason: "MirrorOnOneDevice", Severity: drivebay.SeverityDegraded,
		When: "both drives of a mirror are units of one device: namespaces of an SSD, or the units of a disk with two actuators",
		Says: "that both drives fail together", Next: "The mirror does not survive the loss of the device. Move one of its legs to another device: `drivebay replace {drive}`.",
		Source: "NVM Express Base 2.0, 3.2.1, a namespace is a part of its subsystem; SAM-5, logical units of one SCSI target device",
		check: func(l *look) *hit {
			if !l.Volume.Location.Mirrored() {
				return nil
			}
			legs := l.those(func(d *drivebay.Drive) bool {
				return slices.ContainsFunc(l.on, func(g leg) bool {
					return g.drive != nil && g.id != d.ID && units.OfOneDevice(g.drive, d)
				})
			})
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the drives of the mirror are units of one device, which fail together")
		},
	},
	{
		Section: OnDrives, Reason: "DriveQuarantined", Severity: drivebay.SeverityDegraded,
		When: "a drive is back that was REMOVED, and was not accepted; of a mirror: either drive",
		Says: "that the drive was removed and is back", Next: "Mounted volumes stay in use; drivebay writes nothing else to the drive. Use it again with `drivebay accept {drive}`, or pull it and give up the volume with `drivebay volume forget {volume} --yes`.",
		Source: "an operator has said that the drive is gone: what others rely on may have been made in its place",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool {
				return d.Usage == drivebay.UsageRemoved && d.Status == drivebay.StatusOnline
			})
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the drive was removed and is back")
		},
	},
	{
		Section: OnDrives, Reason: "LayoutUnknown", Severity: drivebay.SeverityDegraded,
		When: "the partitions of the drive in the kernel differ from its partition table, or its partition for LVM is smaller than its physical volume",
		Says: "how they differ", Next: "drivebay stages and writes nothing there until they agree. Restore the partition table; or unstage all volumes of the drive and run `partprobe`.",
		Source: "the kernel keeps its partitions in use when another program writes a table (partprobe(8), BLKRRPART is EBUSY)",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return l.Layouts[d.ID] != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the partitions of the drive are uncertain: %s", l.Layouts[legs[0].drive.ID])
		},
	},
	{
		Section: OnDrives, Reason: "PartitionTableDamaged", Severity: drivebay.SeverityDegraded,
		When: "one of the two copies of the partition table of the drive, or the protective MBR before it, is damaged",
		Says: "what is damaged", Next: "Repair the table: `sgdisk --verify` shows what is wrong, and `gdisk` writes both copies again (`w`). If it was not another program, the drive loses data: replace it with `drivebay replace {drive}`.",
		Source: "UEFI 2.10, 5.3.2; Linux, block/partitions/efi.c: without a sound copy, or without the protective MBR, the kernel shows no partition",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.Content.TableDamage != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the partition table of the drive is damaged: %s", legs[0].drive.Content.TableDamage)
		},
	},
	{
		Section: OnDrives, Reason: "ConfigError", Severity: drivebay.SeverityInaccessible,
		When: "the drive is write-protected; of a mirror: all its drives",
		Says: "that the kernel refuses writes to the drive", Next: "Remove the write protection (a switch, `blockdev --setrw`, or a setting of the drive). Then stop the pod and start it again, so that the volume is staged again.",
		Source: kepCodes + "; /sys/block/*/ro",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.ReadOnly })
			if !l.lost(legs) {
				return nil
			}
			return say(legs, "the drive is write-protected")
		},
	},
	{
		Section: OnDrives, Reason: "ConfigError", Severity: drivebay.SeverityDegraded,
		When: "a drive of a mirror is write-protected and another is not",
		Says: "that the kernel refuses writes to the drive", Next: "Remove the write protection: a mirror stops using a leg that fails writes. Then run `drivebay heal {volume}`.",
		Source: kepCodes + "; /sys/block/*/ro; lvmraid(7), device failure",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.ReadOnly })
			if len(legs) == 0 || l.lost(legs) {
				return nil
			}
			return say(legs, "a drive of the mirror is write-protected")
		},
	},
	{
		Section: OnDrives, Reason: "NetworkError", Severity: drivebay.SeverityDegraded,
		When: "one of several paths to a drive is down",
		Says: "which path, and its state", Next: "The volume uses the other path. Check the cable, the expander and the controller of the failed path.",
		Source: kepCodes + "; a path's state in sysfs is running (SCSI) or live (NVMe)",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return downPath(d) != nil })
			if len(legs) == 0 {
				return nil
			}
			p := downPath(legs[0].drive)
			return say(legs, "a path to the drive is down: %s is %s", p.Name, p.State)
		},
	},
}

// downPath returns a path that does not work, if the drive has several; else nil.
func downPath(d *drivebay.Drive) *drivebay.Path {
	if len(d.Paths) < 2 {
		return nil
	}
	for i := range d.Paths {
		switch d.Paths[i].State {
		case "running", "live", "":
		default:
			return &d.Paths[i]
		}
	}
	return nil
}
