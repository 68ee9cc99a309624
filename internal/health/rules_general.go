package health

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

// generalRules apply to every drive that can report its health.
var generalRules = []Rule{
	{
		Code:    "OwnVerdict",
		Suspect: "the drive's own verdict is FAILED for its temperature alone (NVMe, SCSI), or for bits of an NVMe critical warning, which are judged one by one below",
		Bad:     "the drive's own verdict is FAILED for any other reason, or for none that it gives",
		Advice:  replaceSoon,
		Source:  "SMART RETURN STATUS (ACS-4), informational exceptions (SPC-5), critical warning (NVMe). Five of forty failing SSDs say it nowhere else",
		check:   ownVerdict,
	},
	{
		Code:    "DriveOffline",
		Unknown: "a complete listing of the machine lacks the drive",
		Advice:  "If it was not pulled, check the sled, the cable and the power of its bay.",
		Source:  "sysfs: the kernel has removed the device. What the drive said last need not be true now",
		check: func(l *look) *hit {
			if l.Gone.IsZero() {
				return nil
			}
			return unknown("the kernel has the drive no more, since %s", l.Gone.UTC().Format(time.RFC3339))
		},
	},
	{
		Code:    "EvidenceLost",
		Unknown: "the document has evidence that cannot be decoded, such as an attribute table of the wrong type",
		Advice:  "Make the document anew; see its problems for what cannot be decoded.",
		Source:  "what is destroyed says neither that the drive is well nor that it is not",
		check: func(l *look) *hit {
			for _, p := range l.ev.Problems {
				if p.Lost {
					return unknown("%s", p.Text)
				}
			}
			return nil
		},
	},
	{
		Code:    "SelfTest",
		Suspect: "a self-test failed or could not be completed, and no long one has passed since; a failed short one ends with a short one that passed",
		Bad:     "it failed, and so did one before it, or there are pending or uncorrectable sectors",
		Advice:  "Make sure that copies exist and replace the drive; a self-test also reads sectors that no program reads.",
		Source:  "self-test logs (ACS-4, NVMe, SPC-5): read, servo, electrical or segment failure; a test stopped by the host says nothing",
		check:   selfTest,
	},
}

func ownVerdict(l *look) *hit {
	if l.ev.Verdict != drivebay.VerdictFailed {
		return nil
	}
	switch {
	case l.protocol == drivebay.ProtocolNVMe && heatOnly(l.ev.NVMe):
		return suspect(0, "the drive's own verdict is FAILED, for its temperature")
	case l.protocol == drivebay.ProtocolNVMe && l.warning() != 0:
		return suspect(0, "the drive's own verdict is FAILED (critical warning 0x%02x)", l.warning())
	case l.protocol == drivebay.ProtocolSCSI && l.ev.SCSI != nil && l.ev.SCSI.ASC == ascWarning && l.ev.SCSI.ASCQ == ascqHeat:
		return suspect(0, "the drive's own verdict is FAILED, for its temperature")
	}
	return bad(0, "the drive's own verdict is FAILED")
}

// selfTest judges the failed tests that no later test has outdated.
func selfTest(l *look) *hit {
	failed := failedTests(l.ev.SelfTests)
	if len(failed) == 0 {
		return nil
	}
	newest := failed[0]
	text := fmt.Sprintf("a self-test (%s, at %d h) ended with %q", newest.Kind, newest.Hours, newest.Text)
	if newest.LBA != nil {
		text += fmt.Sprintf(" at LBA %d", *newest.LBA)
	}
	switch {
	case newest.Result == drivebay.SelfTestFatal:
	case len(failed) > 1:
		return bad(newest.Hours, "%s, and so did one before it", text)
	case l.unreadable():
		return bad(newest.Hours, "%s, and sectors are unreadable", text)
	}
	return suspect(newest.Hours, "%s", text)
}

// failedTests returns the failed tests, newest first, up to the newest long test that passed. A short
// test does not read the whole medium: one that passed outdates only the short ones before it
// (smartmontools counts failures as outdated by extended tests only, ataprint.cpp).
func failedTests(newestFirst []drivebay.SelfTest) (failed []drivebay.SelfTest) {
	shortPassed := false
	for _, t := range newestFirst {
		switch t.Result {
		case drivebay.SelfTestPassed:
			if t.Kind == "long" {
				return failed
			}
			shortPassed = shortPassed || t.Kind == "short"
		case drivebay.SelfTestFailed, drivebay.SelfTestFatal:
			if t.Kind != "short" || !shortPassed {
				failed = append(failed, t)
			}
		}
	}
	return failed
}

// unreadable reports whether the drive counts sectors that it cannot read now.
func (l *look) unreadable() bool {
	return l.counters["ata.197"] > 0 || l.counters["ata.198"] > 0 || l.counters[keyDefects] > 0 || l.counters[keyNVMeMedia] > 0
}
