package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

const pull = "Reseat the drive; if it stays away, replace it."

// kernelRules judge the evidence of the kernel; they need no access to the drive.
var kernelRules = []Rule{
	{
		Code:   "KernelOffline",
		Bad:    "the kernel holds the device offline, or the NVMe controller dead",
		Advice: pull, Source: "Linux SCSI error handling sets offline when every reset failed; drivers/nvme sets dead",
		Quick: true,
		check: func(l *look) *hit {
			switch s := l.k.State; s {
			case "offline", "transport-offline", "dead":
				return bad(0, "the kernel has given the device up: state %s", s)
			}
			return nil
		},
	},
	{
		Code: "NVMeController", Protocols: onNVMe,
		Suspect: "the best of the drive's controllers is not live in two rounds in a row",
		Advice:  "Check the slot and the PCIe link; see the kernel log.", Source: "Linux drivers/nvme: the controller's state file",
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
		Bad:    "the kernel has held the device at 0 bytes for a second or more",
		Advice: pull, Source: "Linux sets the capacity to 0 when a drive does not answer READ CAPACITY or its namespace is gone; one that is just coming has none for a moment (seen for 0.1 s with virtio_scsi)",
		Quick: true,
		check: func(l *look) *hit {
			if l.k.NoSize() {
				return bad(0, "the kernel holds the device at 0 bytes")
			}
			return nil
		},
	},
	{
		Code:   "DriveShrank",
		Bad:    "the drive has fewer bytes than before, or than its partition table says",
		Advice: "Look for a hidden area with `hdparm -N`, and connect the drive without a USB bridge or RAID controller; copy a clone to a drive that is no smaller. To use the drive as it is, empty: pull it, `drivebay forget DRIVE`, wipe it in another machine.",
		Source: "ACS-4, host protected area and device configuration overlay; Linux takes a GPT of a larger drive for invalid (block/partitions/efi.c, is_gpt_valid)",
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
		Unknown: "opening the device fails in another way",
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
		Suspect: "requests wait for {frozenSuspect} and none comes back",
		Bad:     "for {frozenBad}",
		Advice:  "Do not touch the filesystem; see the kernel log, and be ready to pull the drive.",
		Source:  "/sys/block/*/inflight and stat: visible on a hung disk in a second, with no touch",
		Quick:   true,
		check: func(l *look) *hit {
			if severity, ok := grade(uint64(max(l.k.Frozen, 0)), uint64(l.th.FrozenSuspect), uint64(l.th.FrozenBad)); ok {
				return &hit{severity, uint64(l.k.Frozen / time.Second), fmt.Sprintf("%d requests wait and none has come back for %s", l.k.Inflight, l.k.Frozen)}
			}
			return nil
		},
	},
	{
		Code:    "KernelSilent",
		Suspect: "the drive leaves our own question unanswered for {silentSuspect}",
		Bad:     "for {silentBad}",
		Advice:  "See the kernel log, and be ready to pull the drive.",
		Source:  "a drive that sleeps answers within its spin-up time, about 15 s",
		Quick:   true,
		check: func(l *look) *hit {
			if severity, ok := grade(uint64(max(l.k.LaneStuck, 0)), uint64(l.th.SilentSuspect), uint64(l.th.SilentBad)); ok {
				return &hit{severity, uint64(l.k.LaneStuck / time.Second), fmt.Sprintf("a question to the drive has had no answer for %s", l.k.LaneStuck)}
			}
			return nil
		},
	},
	{
		Code:    "KernelMediaErrors",
		Suspect: "the kernel met unrecovered errors on {kernelMediaSuspect} sector in 24 h",
		Bad:     "on {kernelMediaBad} distinct sectors",
		Advice:  watch, Source: "kernel log: medium error, critical medium error, unrecovered read error",
		check: func(l *look) *hit {
			n := l.k.MediaErrors24h
			if severity, ok := grade(n, l.th.KernelMediaSuspect, l.th.KernelMediaBad); ok {
				return &hit{severity, n, fmt.Sprintf("the kernel met unrecovered errors on %d sectors in 24 h%s", n, l.lastLog())}
			}
			return nil
		},
	},
	{
		Code:    "KernelErrors",
		Suspect: "{kernelOther} other errors of the drive in the kernel log in 24 h, or the kernel's error counter +{kernelIOErrors} in an hour",
		Advice:  checkLink,
		Source:  "kernel log; /sys/block/*/device/ioerr_cnt, which is not zero on sound drives and counts refused questions too: only growth is evidence",
		Quick:   true,
		check: func(l *look) *hit {
			p := l.since(keyIOErrors, hour)
			if n := l.k.OtherErrors24h; n >= l.th.KernelOther {
				return suspect(n, "%d errors in the kernel log in 24 h%s", n, l.lastLog())
			}
			if p.grown >= l.th.KernelIOErrors {
				return suspect(p.grown, "the kernel's error counter grew by %d in %s", p.grown, span(hour))
			}
			return nil
		},
	},
	{
		Code:    "KernelTimeouts",
		Suspect: "the kernel's timeout counter +{kernelTimeouts}, or {kernelResets} resets, in an hour; on SATA it counts commands that failed, too",
		Advice:  "Reseat the drive and check cable, backplane and controller. Beside errors of its medium it is the drive.",
		Source: "kernel log; /sys/block/*/device/iotmo_cnt counts calls of scsi_timeout (drivers/scsi/scsi_error.c), and libata sends each command that " +
			"fails through it (drivers/ata/libata-eh.c, ata_qc_schedule_eh): six tries of one unreadable sector count six",
		Quick: true,
		check: kernelTimeouts,
	},
	{
		Code:    "FilesystemErrors",
		Suspect: "a filesystem on the drive has counted {filesystemErrors} errors",
		Advice:  "Check the filesystem when it is not mounted; the count goes to zero with it.",
		Source:  "ext4 keeps errors_count in the superblock and in /sys/fs/ext4",
		check: func(l *look) *hit {
			var total uint64
			var parts []string
			for _, f := range l.k.Filesystems {
				if f.Errors > 0 {
					total = max(total, f.Errors)
					parts = append(parts, fmt.Sprintf("%s on %s has counted %d errors", f.FS, f.Device, f.Errors))
				}
			}
			if total >= l.th.FilesystemErrors {
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
		parts = append(parts, fmt.Sprintf("%d commands timed out or failed", p.grown))
	}
	if resets > 0 {
		parts = append(parts, fmt.Sprintf("%d resets", resets))
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
		Unknown: "a drive that can be asked was not looked at yet, or gave nothing usable",
		Advice:  "See `drivebay smart` for what was asked and what came back; check the permissions and the controller.",
		Source:  "a failed read is a fact about the drive, and never a healthy one. A drive that never promised SMART (virtio, loop, most USB bridges) is not asked to prove its health",
		check:   evidenceMissing,
	},
	{
		Code:    "EvidenceStale",
		Unknown: "the last look at the drive is older than {staleAfter} and the drive is not asleep",
		Advice:  "The drive has stopped answering: see the kernel log.",
		Source:  "what was true then need not be true now",
		check: func(l *look) *hit {
			if l.Evidence == nil || l.Now.IsZero() || l.ev.At.IsZero() || l.ev.Standby || l.protocol == drivebay.ProtocolNone || !l.Gone.IsZero() {
				return nil
			}
			if age := l.Now.Sub(l.ev.At); age >= l.th.StaleAfter {
				return unknown("the last answer of the drive is %s old", span(age.Truncate(1e9)))
			}
			return nil
		},
	},
}

func evidenceMissing(l *look) *hit {
	if l.protocol == drivebay.ProtocolNone {
		return nil
	}
	if l.Evidence == nil {
		return unknown("the drive was not looked at yet")
	}
	if l.usable() {
		return nil
	}
	promised := l.protocol != drivebay.ProtocolSCSI
	for _, p := range l.ev.Problems {
		if !p.Expected {
			return unknown("the drive's health could not be read: %s", p.Text)
		}
		promised = false
	}
	switch {
	case l.ev.Standby:
		return unknown("the drive is asleep and was never asked")
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
