package health

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

// generalRules hold for every drive that can be asked.
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
		Advice:  "If nobody pulled it, check the sled, the cable and the power of its bay.",
		Source:  "sysfs: the kernel has removed the device. What the drive said last need not be true now",
		check: func(l *look) *hit {
			if l.Gone.IsZero() {
				return nil
			}
			return unknown("the kernel has the drive no more, since %s", l.Gone.UTC().Format(time.RFC3339))
		},
	},
	{
		Code:    "SelfTest",
		Suspect: "the newest completed self-test failed, or could not be completed",
		Bad:     "it failed, and so did the one before it, or there are pending or uncorrectable sectors",
		Advice:  "Make sure that copies exist and replace the drive; a self-test reads what nobody else reads.",
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

// selfTest looks at completed tests only, newest first.
func selfTest(l *look) *hit {
	var done []drivebay.SelfTest
	for _, t := range l.ev.SelfTests {
		switch t.Result {
		case drivebay.SelfTestPassed, drivebay.SelfTestFailed, drivebay.SelfTestFatal:
			done = append(done, t)
		}
	}
	if len(done) == 0 || done[0].Result == drivebay.SelfTestPassed {
		return nil
	}
	newest := done[0]
	text := fmt.Sprintf("the newest self-test (%s, at %d h) ended with %q", newest.Kind, newest.Hours, newest.Text)
	if newest.LBA != nil {
		text += fmt.Sprintf(" at LBA %d", *newest.LBA)
	}
	switch {
	case newest.Result == drivebay.SelfTestFatal:
	case len(done) > 1 && done[1].Result == drivebay.SelfTestFailed:
		return bad(newest.Hours, "%s, and so did the one before it", text)
	case l.unreadable():
		return bad(newest.Hours, "%s, and sectors are unreadable", text)
	}
	return suspect(newest.Hours, "%s", text)
}

// unreadable is whether the drive knows of sectors that it cannot give back now.
func (l *look) unreadable() bool {
	return l.counters["ata.197"] > 0 || l.counters["ata.198"] > 0 || l.counters[keyDefects] > 0 || l.counters[keyNVMeMedia] > 0
}
