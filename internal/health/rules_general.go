package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// generalRules apply to every drive that can report its health.
var generalRules = []Rule{
	{
		Code:    "OwnVerdict",
		Suspect: "the drive reports FAILED because of its temperature alone (NVMe, SCSI), or because of bits of the NVMe critical warning: the NVMe rules below judge each bit",
		Bad:     "the drive reports FAILED for any other reason, or gives no reason",
		Advice:  "The drive itself reports a failure. If its other findings show only heat or wear, follow their advice. Otherwise replace it: `drivebay replace DRIVE` moves its volumes to other drives first.",
		Source:  "SMART RETURN STATUS (ACS-4), informational exceptions (SPC-5), critical warning (NVMe). For five of forty failing SSDs this was the only sign",
		check:   ownVerdict,
	},
	{
		Code:    "DriveOffline",
		Unknown: "a complete listing of the machine lacks the drive",
		Advice:  "The data on the drive is not reachable. Unless it was pulled on purpose, check the sled, the cable and the power of its bay.",
		Source:  "sysfs: the kernel has removed the device. The last evidence of the drive may be out of date",
		check: func(l *look) *hit {
			if l.Gone.IsZero() {
				return nil
			}
			return unknown("the drive has been absent from the machine since %s", l.Gone.UTC().Format(time.RFC3339))
		},
	},
	{
		Code:    "EvidenceLost",
		Unknown: "the document has evidence that cannot be decoded, such as an attribute table of the wrong type",
		Advice:  "Create the document again; its problems show what cannot be decoded.",
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
		Suspect: "a self-test failed or could not be completed, and no long test has passed since. A short test that passed outdates failed short tests; a selective test that passed outdates failures at the addresses that it read, while the drive keeps its spans",
		Bad:     "a self-test failed, and an earlier one failed too or the drive has pending or uncorrectable sectors",
		Advice:  "The drive found a fault in itself; a long self-test also reads sectors that no program reads. Make sure that the data has a copy, and replace the drive: `drivebay replace DRIVE`.",
		Source:  "self-test logs (ACS-4, NVMe, SPC-5): read, servo, electrical or segment failure. A test that the host aborted is no evidence",
		Passing: true,
		check:   selfTest,
	},
}

func ownVerdict(l *look) *hit {
	if l.ev.Verdict != drivebay.VerdictFailed {
		return nil
	}
	switch {
	case l.protocol == drivebay.ProtocolNVMe && heatOnly(l.ev.NVMe):
		return suspect(0, "the drive's own verdict is FAILED because of its temperature")
	case l.protocol == drivebay.ProtocolNVMe && l.warning() != 0:
		return suspect(0, "the drive's own verdict is FAILED (critical warning 0x%02x)", l.warning())
	case l.protocol == drivebay.ProtocolSCSI && l.ev.SCSI != nil && l.ev.SCSI.ASC == ascWarning && l.ev.SCSI.ASCQ == ascqHeat:
		return suspect(0, "the drive's own verdict is FAILED because of its temperature")
	}
	return bad(0, "the drive's own verdict is FAILED")
}

// earlierFailed ends the text of a failed self-test that is not the only one.
const earlierFailed = ", and an earlier self-test failed too"

// selfTest judges the failed tests that no later test has outdated.
func selfTest(l *look) *hit {
	failed := failedTests(l.ev)
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
		return bad(newest.Hours, "%s%s", text, earlierFailed)
	case l.unreadable():
		return bad(newest.Hours, "%s, and sectors are unreadable", text)
	}
	return suspect(newest.Hours, "%s", text)
}

// failedTests returns the failed tests, newest first, up to the newest long test that passed. A short
// test does not read the whole medium: one that passed outdates only the short ones before it
// (smartmontools counts failures as outdated by extended tests only, ataprint.cpp). A selective test
// that passed outdates failures at an address that it read.
func failedTests(ev *drivebay.Evidence) (failed []drivebay.SelfTest) {
	shortPassed := false
	read, selective := []drivebay.Span(nil), false // of the newest selective test
	for _, t := range ev.SelfTests {
		newestSelective := t.Kind == "selective" && !selective
		selective = selective || newestSelective
		switch t.Result {
		case drivebay.SelfTestPassed:
			if t.Kind == "long" {
				return failed
			}
			shortPassed = shortPassed || t.Kind == "short"
			if newestSelective {
				read = spansRead(ev)
			}
		case drivebay.SelfTestFailed, drivebay.SelfTestFatal:
			if (t.Kind != "short" || !shortPassed) && !readSince(ev, t, read) {
				failed = append(failed, t)
			}
		}
	}
	return failed
}

// spansRead returns the spans of the selective self-test log. The drive keeps one set of them, and a
// new test replaces it: they belong to the newest selective test in the self-test log, unless one is under
// way, which is in no log yet. The kind of a test under way is not always known.
func spansRead(ev *drivebay.Evidence) []drivebay.Span {
	running, kind := ev.SelfTestProgress != nil, ev.SelfTestKind
	for _, t := range ev.SelfTests {
		if t.Result == drivebay.SelfTestRunning {
			running, kind = true, t.Kind
			break
		}
	}
	if ev.ATA == nil || running && kind != "short" && kind != "long" {
		return nil
	}
	return ev.ATA.SelectiveSpans
}

// readSince reports whether one of the spans contains the address at which a test failed. It reports
// false for a failure without an address, and for an address that the log may have cut.
func readSince(ev *drivebay.Evidence, t drivebay.SelfTest, spans []drivebay.Span) bool {
	if t.LBA == nil || t.Result != drivebay.SelfTestFailed || mayBeCut(ev, t) {
		return false
	}
	return slices.ContainsFunc(spans, func(s drivebay.Span) bool { return s.First <= *t.LBA && *t.LBA <= s.Last })
}

// mayBeCut reports whether the address of a failure may lack its upper bits. Log 06h has 28 bits for it
// (ACS-3, A.17), and drives use the four bits above them as well: an address that needs them shows that.
func mayBeCut(ev *drivebay.Evidence, t drivebay.SelfTest) bool {
	size := ev.Identity.Size
	if !t.ShortLBA {
		return false
	}
	blocks := size / 512
	if ev.ATA != nil && ev.ATA.LogicalSector > 512 {
		blocks = size / ev.ATA.LogicalSector
	}
	return size == 0 || blocks > 1<<32 || blocks > 1<<28 && *t.LBA < 1<<28
}

// unreadable reports whether the drive counts sectors that it cannot read now.
func (l *look) unreadable() bool {
	return l.counters["ata.197"] > 0 || l.counters["ata.198"] > 0 || l.counters[keyDefects] > 0 || l.counters[keyNVMeMedia] > 0
}
