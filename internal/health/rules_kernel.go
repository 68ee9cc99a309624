package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

const pull = "The data on the drive is not reachable. Reseat the drive. If it does not come back, replace it: `drivebay replace DRIVE`."

// kernelRules judge the evidence of the kernel; they need no access to the drive.
var kernelRules = []Rule{
	{
		Code:   "KernelOffline",
		Bad:    "the kernel has set the device offline, or the NVMe controller dead",
		Advice: pull, Source: "Linux SCSI error handling sets a device offline when every reset has failed; drivers/nvme sets a controller dead",
		Quick: true,
		check: func(l *look) *hit {
			switch s := l.k.State; s {
			case "offline", "transport-offline", "dead":
				return bad(0, "the kernel has given up the device: state %s", s)
			}
			return nil
		},
	},
	{
		Code: "NVMeController", Protocols: onNVMe,
		Suspect: "no controller of the drive is live in two assessments in a row",
		Advice:  "Check the slot, the PCIe link and the kernel log.", Source: "Linux drivers/nvme: the controller's state file",
		Polls: 2, Quick: true,
		check: func(l *look) *hit {
			switch s := l.k.State; s {
			case "", "live", "dead": // dead: see KernelOffline
				return nil
			default:
				return suspect(0, "the controller is %s", s)
			}
		},
	},
	{
		Code:   "KernelSizeZero",
		Bad:    "the kernel has reported a size of 0 bytes for 1 s or longer",
		Advice: pull, Source: "Linux sets the capacity to 0 when a drive does not answer READ CAPACITY or its namespace is gone. A drive that is being added has no capacity for a moment (0.1 s with virtio_scsi)",
		Quick: true,
		check: func(l *look) *hit {
			if l.k.NoSize() {
				return bad(0, "the kernel reports a size of 0 bytes")
			}
			return nil
		},
	},
	{
		Code:   "DriveShrank",
		Bad:    "the drive has fewer bytes than before, or than its partition table needs",
		Advice: "drivebay writes nothing to the drive until it has its size again. Look for a hidden area with `hdparm -N DEVICE`, connect the drive without a USB bridge or RAID controller, or clone it to a drive of the full size. To use it empty at its present size, pull it, run `drivebay forget DRIVE` and wipe it in another machine.",
		Source: "ACS-4, host protected area and device configuration overlay; Linux rejects the GPT of a larger drive (block/partitions/efi.c, is_gpt_valid)",
		Quick:  true,
		check: func(l *look) *hit {
			if l.SizeIssue == "" {
				return nil
			}
			return bad(0, "the drive shrank: %s", l.SizeIssue)
		},
	},
	{
		Code:    "KernelOpen",
		Bad:     "opening the device fails twice in a row with \"no such device or address\"",
		Unknown: "opening the device fails with another error",
		Advice:  pull, Source: "open(2): ENXIO, ENODEV on a device node that exists",
		Quick: true,
		check: func(l *look) *hit {
			e := strings.ToLower(l.k.OpenError)
			switch {
			case e == "":
				return nil
			case strings.Contains(e, "no such device"), strings.Contains(e, "enxio"), strings.Contains(e, "enodev"):
				return bad(0, "the device cannot be opened: %s", l.k.OpenError)
			}
			return unknown("the device cannot be opened: %s", l.k.OpenError)
		},
	},
	{
		Code:    "KernelFrozen",
		Suspect: "requests have waited for {frozenSuspect} and none has completed",
		Bad:     "none has completed for {frozenBad}",
		Advice:  "Programs that use the drive hang. Do not access its filesystems. Check the kernel log; if the drive does not recover, pull it.",
		Source:  "/sys/block/*/inflight and stat show a hung disk within a second and send it no request",
		Quick:   true,
		check: func(l *look) *hit {
			if severity, ok := grade(uint64(max(l.k.Frozen, 0)), uint64(l.th.FrozenSuspect), uint64(l.th.FrozenBad)); ok {
				return &hit{severity, uint64(l.k.Frozen / time.Second), fmt.Sprintf("%d requests wait and none has completed for %s", l.k.Inflight, l.k.Frozen.Truncate(time.Second))}
			}
			return nil
		},
	},
	{
		Code:    "KernelSilent",
		Suspect: "the drive has not answered a request of drivebay for {silentSuspect}",
		Bad:     "no answer for {silentBad}",
		Advice:  "The drive hangs. Check the kernel log; if the drive does not recover, pull it.",
		Source:  "a drive in standby answers within its spin-up time, about 15 s",
		Quick:   true,
		check: func(l *look) *hit {
			if severity, ok := grade(uint64(max(l.k.LaneStuck, 0)), uint64(l.th.SilentSuspect), uint64(l.th.SilentBad)); ok {
				return &hit{severity, uint64(l.k.LaneStuck / time.Second), fmt.Sprintf("the drive has not answered a request for %s", l.k.LaneStuck)}
			}
			return nil
		},
	},
	{
		Code:    "KernelMediaErrors",
		Suspect: "the kernel reported unrecovered errors on >= {kernelMediaSuspect} distinct sectors in 24 h",
		Bad:     ">= {kernelMediaBad} distinct sectors",
		Advice:  watch, Source: "kernel log: medium error, critical medium error, unrecovered read error",
		Passing: true,
		check: func(l *look) *hit {
			n := l.k.MediaErrors24h
			if severity, ok := grade(n, l.th.KernelMediaSuspect, l.th.KernelMediaBad); ok {
				return &hit{severity, n, fmt.Sprintf("the kernel reported unrecovered errors on %s in 24 h%s", plural(n, "sector"), l.lastLog())}
			}
			return nil
		},
	},
	{
		Code:    "KernelErrors",
		Suspect: "the kernel log has {kernelOther} other errors of the drive in 24 h that did not come because it was pulled, or the kernel's error counter increased by {kernelIOErrors} in 1 h, in two assessments in a row",
		Advice:  checkLink,
		Source:  "kernel log; /sys/block/*/device/ioerr_cnt, which is above zero on sound drives and also counts commands that the drive rejects: only growth is evidence",
		Polls:   2, // a drive that is being pulled is gone within a second
		Quick:   true,
		check: func(l *look) *hit {
			p := l.since(keyIOErrors, hour)
			if n := l.k.OtherErrors24h - min(l.k.OtherErrors24h, l.k.LeftErrors); n >= l.th.KernelOther {
				return suspect(n, "%s in the kernel log in 24 h%s", plural(n, "error"), l.lastLog())
			}
			if p.grown >= l.th.KernelIOErrors {
				return suspect(p.grown, "the kernel's error counter grew by %d in %s", p.grown, span(hour))
			}
			return nil
		},
	},
	{
		Code:    "KernelTimeouts",
		Suspect: "the kernel's timeout counter increased by {kernelTimeouts}, or the kernel reset the drive {kernelResets} times, in 1 h. On SATA the counter also counts failed commands",
		Advice:  "Reseat the drive, and check cable, backplane and controller. If the drive has media errors as well, the drive is the cause: replace it with `drivebay replace DRIVE`.",
		Source: "kernel log; /sys/block/*/device/iotmo_cnt counts calls of scsi_timeout (drivers/scsi/scsi_error.c), and libata sends each command that " +
			"fails through it (drivers/ata/libata-eh.c, ata_qc_schedule_eh): six tries of one unreadable sector count six",
		Quick: true,
		check: kernelTimeouts,
	},
	{
		Code:    "DriveReturns",
		Suspect: "the drive left the machine, or the kernel gave it up, and it was back, {driveReturns} times in 24 h",
		Advice:  "Check the sled, the cable, the power of the bay, and the log of the expander or controller. If another drive has no such fault in the bay, replace the drive with `drivebay replace DRIVE`.",
		Source:  "the drive answers each time that it is back, so no other rule shows it; what was in its write cache when it lost its power is lost. A drive that was taken out after `drivebay replace` does not count",
		Quick:   true,
		check: func(l *look) *hit {
			if l.Returns < l.th.DriveReturns {
				return nil
			}
			return suspect(l.Returns, "the drive left and was back %d times in 24 h", l.Returns)
		},
	},
	{
		Code:    "FilesystemErrors",
		Suspect: "the error count of a filesystem on the drive >= {filesystemErrors}",
		Advice:  "Files may be damaged. Check the filesystem while it is not mounted: `drivebay heal VOLUME --fsck` for a volume. The check resets the count.",
		Source:  "ext4 keeps errors_count in the superblock and in /sys/fs/ext4",
		Passing: true,
		check: func(l *look) *hit {
			var most, total uint64
			var parts []string
			for _, f := range l.k.Filesystems {
				if f.Errors > 0 {
					most, total = max(most, f.Errors), total+f.Errors
					parts = append(parts, fmt.Sprintf("%s on %s has counted %s", f.FS, f.Device, plural(f.Errors, "error")))
				}
			}
			if most >= l.th.FilesystemErrors {
				return suspect(total, "%s", list(parts))
			}
			return nil
		},
	},
}

func kernelTimeouts(l *look) *hit {
	p, resets := l.since(keyIOTimeouts, hour), l.k.Resets1h
	if p.grown < l.th.KernelTimeouts && resets < l.th.KernelResets {
		return nil
	}
	var parts []string
	if p.grown > 0 {
		parts = append(parts, fmt.Sprintf("%s timed out or failed", plural(p.grown, "command")))
	}
	if resets > 0 {
		parts = append(parts, plural(resets, "reset"))
	}
	return suspect(max(p.grown, resets), "%s in %s%s", strings.Join(parts, " and "), span(hour), l.lastLog())
}

// lastLog returns the last line of the kernel log about the drive in parentheses, or "".
func (l *look) lastLog() string {
	if l.k.LastLog == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", l.k.LastLog)
}

// silenceRules find drives that cannot be judged, which are not GOOD.
var silenceRules = []Rule{
	{
		Code:    "EvidenceMissing",
		Unknown: "a drive that can report its health was not read yet, or returned nothing usable",
		Advice:  "The drive may fail without warning. `drivebay smart DRIVE` shows which pages were read and which failed. Check the permissions of the daemon, and the controller.",
		Source:  "a failed read never proves a healthy drive. The rule does not apply to drives without SMART (virtio, loop, most USB bridges)",
		check:   evidenceMissing,
	},
	{
		Code:    "EvidenceStale",
		Unknown: "the last reading of the drive is older than {staleAfter}, and the drive is not in standby",
		Advice:  "The drive has stopped answering. Check the kernel log.",
		Source:  "old evidence may be out of date",
		check: func(l *look) *hit {
			if l.Evidence == nil || l.Now.IsZero() || l.ev.At.IsZero() || l.ev.Standby || l.protocol == drivebay.ProtocolNone || !l.Gone.IsZero() {
				return nil
			}
			if age := l.Now.Sub(l.ev.At); age >= l.th.StaleAfter {
				return unknown("the last reading of the drive is %s old", span(age.Truncate(1e9)))
			}
			return nil
		},
	},
}

// noSMART is the page of the problem with which a document says that a drive has no SMART; "" is of the document as a whole.
const noSMART = "smart"

func evidenceMissing(l *look) *hit {
	if l.protocol == drivebay.ProtocolNone {
		return nil
	}
	if l.Evidence == nil {
		return unknown("the drive was not read yet")
	}
	if l.usable() {
		return nil
	}
	// A SCSI device without log pages is a bridge or an emulation, unless it had them before. What an ATA drive or an SSD refuses
	// otherwise says nothing of its health: one whose SMART was turned off may refuse other logs as well.
	promised := l.protocol != drivebay.ProtocolSCSI || l.hasCounted(keyGrown, keyUncorrected)
	for _, p := range l.ev.Problems {
		if !p.Expected {
			return unknown("the drive's health could not be read: %s", p.Text)
		}
		promised = promised && p.Page != "" && p.Page != noSMART
	}
	switch a := l.ev.ATA; {
	case l.ev.Standby:
		return unknown("the drive is in standby and was never read")
	case a != nil && a.SMARTSupported && !a.SMARTEnabled:
		return unknown("SMART is switched off in the drive")
	case promised:
		return unknown("the drive's health could not be read")
	}
	return nil
}

// usable reports whether the evidence has a part that could show a fault.
func (l *look) usable() bool {
	ev := l.ev
	if l.protocol == drivebay.ProtocolNVMe {
		if ev.NVMe == nil { // the verdict alone is enough where the log was not read
			return ev.Verdict != drivebay.VerdictUnknown &&
				!slices.ContainsFunc(ev.Problems, func(p drivebay.Problem) bool { return p.Page == "nvme-smart-log" })
		}
		return !blankLog(ev.NVMe)
	}
	if ev.ATA != nil && len(ev.ATA.Attributes) > 0 {
		return true
	}
	if slices.ContainsFunc(ev.Problems, func(p drivebay.Problem) bool { return p.Page == "ata-smart-data" && !p.Expected }) {
		return false // the drive's own PASSED is not enough where its attributes are unreadable
	}
	if ev.Verdict != drivebay.VerdictUnknown {
		return true
	}
	return ev.SCSI != nil && (ev.SCSI.HasIE || len(ev.SCSI.ErrorCounters) > 0 || ev.SCSI.GrownDefects != nil)
}

// blankLog reports whether a failed command left the health log empty: no drive is at 0 K, has no
// spare and was never on.
func blankLog(n *drivebay.NVMe) bool {
	return n.TemperatureKelvin == 0 && n.CriticalWarning|n.AvailableSpare|n.SpareThreshold|n.PercentageUsed == 0 &&
		n.PowerOnHours|n.PowerCycles|n.DataUnitsRead|n.DataUnitsWritten|n.MediaErrors == 0
}
