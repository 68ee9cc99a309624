package condition

import (
	"slices"

	"github.com/drivebay/drivebay"
)

const (
	replace     = "Move the data away while it can be read and replace the drive: `drivebay drive show {drive}` says why."
	restoreSize = "Nothing is staged or written there until the size is back: `hdparm -N` shows a hidden area; connect the drive without a USB bridge or RAID controller; copy a clone to a drive that is no smaller."
	putBack     = "Put the sled back, or check cable and power of the bay; the volume returns with its drive."
)

var driveRules = []Rule{
	{
		Section: OnDrives, Reason: "DiskRemoved", Severity: drivebay.SeverityInaccessible,
		When: "a complete listing of the machine lacks the drive; of a mirror, all of its drives",
		Says: "that the drive is gone", Next: putBack,
		Source: kepCodes + "; sysfs: the kernel has removed the device",
		check: func(l *look) *hit {
			if !l.lost(l.missing) {
				return nil
			}
			return say(l.missing, "the drive is gone from the machine")
		},
	},
	{
		Section: OnDrives, Reason: "DiskRemoved", Severity: drivebay.SeverityDegraded,
		When: "a mirror has lost a drive and still has another",
		Says: "that a leg is gone", Next: "Put the sled back, or give the mirror a new drive: another failure now loses the volume.",
		Source: kepCodes + "; csi-baremetal volume health proposal, use cases",
		check: func(l *look) *hit {
			if len(l.missing) == 0 || l.lost(l.missing) {
				return nil
			}
			return say(l.missing, "a drive of the mirror is gone from the machine; the other serves")
		},
	},
	{
		Section: OnDrives, Reason: "DiskFailure", Severity: drivebay.SeverityInaccessible,
		When: "the kernel has given the drive up, and no other drive has a copy",
		Says: "that the drive cannot be reached, and its worst finding", Next: "Reseat the drive; if it stays away, replace it and restore the volume.",
		Source: kepCodes + "; Linux SCSI error handling sets offline when every reset failed, drivers/nvme sets dead, a capacity of 0 is a drive that does not answer",
		check: func(l *look) *hit {
			if !l.unreachable() {
				return nil
			}
			return say(l.dead, "the kernel has given the drive up: %s", worstFindings(l.dead))
		},
	},
	{
		Section: OnDrives, Reason: "DiskFailure", Severity: drivebay.SeverityDegraded,
		When: "the drive, or one drive of a mirror, is BAD and can still be reached, or another has a copy",
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
		Says: "the worst finding on the drive", Next: "Make sure that copies exist and plan its replacement: `drivebay drive show {drive}` says why.",
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
		When: "a drive should answer and does not, or it is not known if it is there at all",
		Says: "what is not known, and why", Next: "Silence is not health: `drivebay refresh` asks again, the kernel log says more.",
		Source: seedCtl + ".1, Health != GOOD",
		check: func(l *look) *hit {
			if len(l.unknown) == 0 {
				return nil
			}
			return say(l.unknown, "the health of the drive is not known: %s", worstFindings(l.unknown))
		},
	},
	{
		Section: OnDrives, Reason: "IdentityConflict", Severity: drivebay.SeverityDegraded,
		When: "a drive cannot be told from another one: equal or empty serials or worldwide names",
		Says: "which drives are alike", Next: "Take one of the two out of the machine before anything is moved, grown or removed.",
		Source: "a write to the wrong one of two drives destroys data",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.IdentityIssue != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the drive cannot be told from others: %s", legs[0].drive.IdentityIssue)
		},
	},
	{
		Section: OnDrives, Reason: "DriveCopied", Severity: drivebay.SeverityDegraded,
		When: "another drive has the same partition table or physical volume: one was copied from the other",
		Says: "which drive it is, and what both have", Next: "What is mounted goes on; nothing else is written to either drive. Find out which is which, then pull the copy or run `wipefs --all` on it.",
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
		When: "a drive has fewer bytes than before, or than its partition table says",
		Says: "both sizes", Next: restoreSize,
		Source: "Linux takes a GPT of a larger drive for invalid (block/partitions/efi.c, is_gpt_valid) and fails reads and writes beyond the end",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return d.SizeIssue != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the drive shrank: %s", legs[0].drive.SizeIssue)
		},
	},
	{
		Section: OnDrives, Reason: "LayoutUnknown", Severity: drivebay.SeverityDegraded,
		When: "the kernel has other partitions of the drive than its partition table, or in other places",
		Says: "how they differ", Next: "Nothing is staged or written there until they agree. Restore the table, or unstage all volumes of the drive and have the kernel read the table with `partprobe`.",
		Source: "the kernel keeps the partitions that it has while another program writes a table (partprobe(8), BLKRRPART is EBUSY)",
		check: func(l *look) *hit {
			legs := l.those(func(d *drivebay.Drive) bool { return l.Layouts[d.ID] != "" })
			if len(legs) == 0 {
				return nil
			}
			return say(legs, "the layout of the drive is unknown: %s", l.Layouts[legs[0].drive.ID])
		},
	},
	{
		Section: OnDrives, Reason: "ConfigError", Severity: drivebay.SeverityInaccessible,
		When: "the drive is write-protected; of a mirror, all of its drives",
		Says: "that the kernel refuses writes to the drive", Next: "Take the write protection away (switch, `blockdev --setrw`, the drive's own setting) and stage the volume anew.",
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
		Says: "that the kernel refuses writes to the drive", Next: "Take the write protection away; a mirror leaves out a leg that fails writes.",
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
		Says: "which path, and its state", Next: "Check cable, expander or controller of that path; the other one serves.",
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
