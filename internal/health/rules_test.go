package health

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func p[T any](v T) *T { return &v }

// attr is an attribute that does not fail.
func attr(id uint8, name string, count uint64) drivebay.Attribute {
	return drivebay.Attribute{ID: id, Name: name, Value: 100, Worst: 100, Threshold: p(uint8(0)), Raw: count, Count: count}
}

func ataInput(kind drivebay.Type, attrs ...drivebay.Attribute) Input {
	return Input{Now: t0, Evidence: &drivebay.Evidence{At: t0, Protocol: drivebay.ProtocolATA, Type: kind, Verdict: drivebay.VerdictPassed,
		ATA: &drivebay.ATA{SMARTSupported: true, SMARTEnabled: true, Attributes: attrs}}}
}

func hdd(attrs ...drivebay.Attribute) Input { return ataInput(drivebay.TypeHDD, attrs...) }
func ssd(attrs ...drivebay.Attribute) Input { return ataInput(drivebay.TypeSSD, attrs...) }

func nvme(change func(*drivebay.NVMe)) Input {
	n := &drivebay.NVMe{AvailableSpare: 100, SpareThreshold: 10, TemperatureKelvin: 310, PowerOnHours: 5}
	if change != nil {
		change(n)
	}
	own := drivebay.VerdictPassed
	if n.CriticalWarning != 0 {
		own = drivebay.VerdictFailed
	}
	return Input{Now: t0, Evidence: &drivebay.Evidence{At: t0, Protocol: drivebay.ProtocolNVMe, Type: drivebay.TypeNVMe, Verdict: own, NVMe: n, PercentUsed: p(int(n.PercentageUsed))}}
}

func scsi(change func(*drivebay.SCSI)) Input {
	s := &drivebay.SCSI{HasIE: true}
	if change != nil {
		change(s)
	}
	return Input{Now: t0, Evidence: &drivebay.Evidence{At: t0, Protocol: drivebay.ProtocolSCSI, Verdict: drivebay.VerdictPassed, SCSI: s}}
}

func kernel(k drivebay.Kernel) Input { return Input{Now: t0, Kernel: &k} }

func (in Input) own(v drivebay.Verdict) Input { in.Evidence.Verdict = v; return in }

func (in Input) tests(results ...drivebay.SelfTestResult) Input {
	for i, r := range results {
		in.Evidence.SelfTests = append(in.Evidence.SelfTests, drivebay.SelfTest{Kind: "long", Result: r, Hours: uint64(100 - i), Text: r.String()})
	}
	return in
}

func (in Input) hours(n uint64) Input { in.Evidence.PowerOnHours = &n; return in }
func (in Input) heat(t int) Input     { in.Evidence.Temperature = &t; return in }
func (in Input) used(n int) Input     { in.Evidence.PercentUsed = &n; return in }

func (in Input) log(kind string, hours uint64) Input {
	in.Evidence.ATA.Errors = append(in.Evidence.ATA.Errors, drivebay.DriveLog{Kind: kind, Hours: hours, Text: kind})
	return in
}

func (in Input) defects(n uint64) Input { in.Evidence.ATA.PendingDefects = &n; return in }

func (in Input) statistic(page uint8, offset uint16, value int64) Input {
	in.Evidence.ATA.Statistics = append(in.Evidence.ATA.Statistics, drivebay.Statistic{Page: page, Offset: offset, Value: value})
	return in
}

func (in Input) lost() Input {
	in.Evidence.Problems = append(in.Evidence.Problems, drivebay.Problem{Page: "document", Text: "a part of the evidence cannot be decoded", Lost: true})
	return in
}

func wearing(id uint8, name string, value, worst uint8, raw uint64) drivebay.Attribute {
	return drivebay.Attribute{ID: id, Name: name, Value: value, Worst: worst, Raw: raw, Count: raw}
}

// worn is an attribute that has met its threshold of 1.
func worn(value uint8) drivebay.Attribute {
	a := wearing(202, "Percent_Lifetime_Remain", value, value, 100)
	a.Threshold, a.FailedNow = p(uint8(1)), true
	return a
}

// kinds gives the self-tests their kinds.
func (in Input) kinds(kinds ...string) Input {
	for i, kind := range kinds {
		in.Evidence.SelfTests[i].Kind = kind
	}
	return in
}

// selectiveOver is a hard disk of some bytes whose selective self-test log names one span.
func selectiveOver(first, last, size uint64) Input {
	in := hdd()
	in.Evidence.Identity.Size = size
	in.Evidence.ATA.SelectiveSpans = []drivebay.Span{{First: first, Last: last}}
	return in
}

// failedAt gives a self-test the address of its failure, which its log may have cut.
func (in Input) failedAt(i int, lba uint64, short bool) Input {
	in.Evidence.SelfTests[i].LBA, in.Evidence.SelfTests[i].ShortLBA = &lba, short
	return in
}

// underWay has a self-test of a kind in progress that is in no log.
func (in Input) underWay(kind string) Input {
	left := 50
	in.Evidence.SelfTestProgress, in.Evidence.SelfTestKind = &left, kind
	return in
}

// past adds a sample of some time ago.
func (in Input) past(ago time.Duration, counters map[string]uint64) Input {
	in.History = append(in.History, drivebay.Sample{At: t0.Add(-ago), Counters: counters})
	return in
}

func (in Input) with(k drivebay.Kernel) Input { in.Kernel = &k; return in }

type one = map[string]uint64

const (
	good  = drivebay.HealthGood
	sus   = drivebay.HealthSuspect
	dead  = drivebay.HealthBad
	dunno = drivebay.HealthUnknown
)

func failing(a drivebay.Attribute, prefail bool, now bool) drivebay.Attribute {
	a.Prefail, a.FailedNow, a.FailedPast = prefail, now, !now
	a.Value, a.Worst, a.Threshold = 20, 20, p(uint8(36))
	return a
}

// judged is one hand-made drive and what is to be said of it.
type judged struct {
	name string
	in   Input
	want drivebay.Health
	code string // of the worst finding
	text string // part of it
}

var judgedATA = []judged{
	{"nothing", hdd(), good, "", ""},
	{"own verdict", hdd().own(drivebay.VerdictFailed), dead, "OwnVerdict", "FAILED"},
	{"own verdict, SSD", ssd().own(drivebay.VerdictFailed), dead, "OwnVerdict", ""},
	{"prefail now", hdd(failing(attr(5, "Reallocated_Sector_Ct", 3), true, true)), dead, "ATAPrefailNow", "Reallocated_Sector_Ct (5) at 20, threshold 36, raw 3"},
	{"prefail past", hdd(failing(attr(1, "Raw_Read_Error_Rate", 3), true, false)), sus, "ATAPrefailPast", "Raw_Read_Error_Rate"},
	{"prefail past, counts corrections", ssd(failing(attr(195, "Cumulativ_Corrected_ECC", 0), true, false)), good, "", ""},
	{"prefail past, counts no corrections", ssd(failing(attr(195, "Uncorrected_ECC", 0), true, false)), sus, "ATAPrefailPast", ""},
	{"heat past", hdd(failing(attr(190, "Airflow_Temperature_Cel", 50), true, false)), good, "", ""},
	{"old age now", hdd(failing(attr(200, "Multi_Zone_Error_Rate", 3), false, true)), sus, "ATAOldAgeNow", "Multi_Zone"},
	{"old age past", hdd(failing(attr(200, "Multi_Zone_Error_Rate", 3), false, false)), good, "", ""},
	{"start-stops now", hdd(failing(attr(4, "Start_Stop_Count", 3), false, true)), good, "", ""},
	{"threshold of the factory", ssd(drivebay.Attribute{ID: 183, Name: "Runtime_Bad_Block", Value: 100, Worst: 100, Threshold: p(uint8(100)), FailedNow: true}), good, "", ""},
	{"reallocated 16", hdd(attr(5, "Reallocated_Sector_Ct", 16)), good, "", ""},
	{"reallocated 17", hdd(attr(5, "Reallocated_Sector_Ct", 17)), sus, "ATAReallocatedSectors", "Reallocated_Sector_Ct 17"},
	{"reallocated 1101", hdd(attr(5, "Reallocated_Sector_Ct", 1101)), dead, "ATAReallocatedSectors", "1101"},
	{"reallocated growing", hdd(attr(5, "Reallocated_Sector_Ct", 60)).past(6*day, one{"ata.5": 10}), dead, "ATAReallocatedSectors", "60, +50 in 7 days"},
	{"reallocated grew long ago", hdd(attr(5, "Reallocated_Sector_Ct", 60)).past(30*day, one{"ata.5": 10}), sus, "ATAReallocatedSectors", ""},
	{"reallocated, unnamed", hdd(attr(5, "Unknown_Attribute", 17)), sus, "ATAReallocatedSectors", ""},
	{"5 means something else", hdd(attr(5, "Read_Channel_Margin", 4000)), good, "", ""},
	{"uncorrectable", hdd(attr(187, "Reported_Uncorrect", 1)), sus, "ATAUncorrectable", ""},
	{"uncorrectable 120", hdd(attr(187, "Reported_Uncorrect", 120)), dead, "ATAUncorrectable", ""},
	{"uncorrectable, upper words only", hdd(attr(187, "Reported_Uncorrect", 0x1b00050000)), good, "", ""},
	{"uncorrectable, low word", hdd(attr(187, "Reported_Uncorrect", 0xa680038005d)), sus, "ATAUncorrectable", "Reported_Uncorrect 93"},
	{"uncorrectable growing with the kernel", hdd(attr(187, "Reported_Uncorrect", 9)).past(3*hour, one{"ata.187": 7}).with(drivebay.Kernel{MediaErrors24h: 1}), dead, "ATAUncorrectable", "+2"},
	{"pending once", hdd(attr(197, "Current_Pending_Sector", 1)), good, "", ""},
	{"pending twice", hdd(attr(197, "Current_Pending_Sector", 1)).past(hour, one{"ata.197": 1}), sus, "ATAPendingSectors", "Current_Pending_Sector 1"},
	{"pending, gone in between", hdd(attr(197, "Current_Pending_Sector", 1)).past(2*hour, one{"ata.197": 1}).past(hour, one{"ata.197": 0}), good, "", ""},
	{"pending and reallocated", hdd(attr(197, "Current_Pending_Sector", 1), attr(5, "Reallocated_Sector_Ct", 1)), sus, "ATAPendingSectors", ""},
	{"pending and offline", hdd(attr(197, "Current_Pending_Sector", 1), attr(198, "Offline_Uncorrectable", 1)), sus, "ATAPendingSectors", "Offline_Uncorrectable 1"},
	{"pending 8", hdd(attr(197, "Current_Pending_Sector", 8)), sus, "ATAPendingSectors", ""},
	{"offline 100", hdd(attr(198, "Offline_Uncorrectable", 100)), dead, "ATAPendingSectors", "Offline_Uncorrectable 100"},
	{"pending growing", hdd(attr(197, "Current_Pending_Sector", 12)).past(25*hour, one{"ata.197": 8}).past(hour, one{"ata.197": 9}), dead, "ATAPendingSectors", "+4"},
	{"pending below zero", hdd(attr(197, "Current_Pending_Sector", 0xfffffffd)), good, "", ""},
	{"spin retry", hdd(attr(10, "Spin_Retry_Count", 1)), sus, "ATASpinRetries", ""},
	{"end to end", hdd(attr(184, "End-to-End_Error", 1)), sus, "ATAEndToEnd", ""},
	{"crc level", hdd(attr(199, "UDMA_CRC_Error_Count", 40000)), good, "", ""},
	{"crc growth", hdd(attr(199, "UDMA_CRC_Error_Count", 40000)).past(hour, one{"ata.199": 39000}), sus, "ATALinkErrors", "+1000"},
	{"timeouts, upper words", hdd(attr(188, "Command_Timeout", 0x100010000)), good, "", ""},
	{"unknown medium is a disk", ataInput(drivebay.TypeUnknown, attr(187, "Reported_Uncorrect", 1)), sus, "ATAUncorrectable", ""},
	{"SSD retired 49", ssd(attr(5, "Retired_Block_Count", 49)), good, "", ""},
	{"SSD retired", ssd(attr(5, "Reallocate_NAND_Blk_Cnt", 50)), sus, "SSDRetiredBlocks", "Reallocate_NAND_Blk_Cnt 50"},
	{"SSD retired, unnamed", ssd(attr(5, "Unknown_SSD_Attribute", 5000)), good, "", ""},
	{"SSD retired, in sectors", ssd(attr(5, "Reallocated_Sector_Ct", 16384)), good, "", ""},
	{"SSD retired, copy of the value", ssd(attr(5, "Reallocated_Sector_Ct", 100)), good, "", ""},
	{"SSD retired and growing", ssd(attr(5, "Retired_Block_Count", 60)).past(day, one{"ata.5": 59}), dead, "SSDRetiredBlocks", "+1"},
	{"SSD retired and prefail", ssd(attr(5, "Retired_Block_Count", 60), failing(attr(232, "Available_Reservd_Space", 1), true, true)), dead, "ATAPrefailNow", ""},
	{"SSD uncorrectable", ssd(attr(187, "Uncorrectable_Error_Cnt", 10)), sus, "SSDUncorrectable", ""},
	{"SSD uncorrectable, plain count", ssd(attr(187, "Reported_Uncorrect", 234973)), sus, "SSDUncorrectable", "234973"},
	{"SSD uncorrectable, other name", ssd(attr(198, "Read_Sectors_Tot_Ct", 4311488490)), good, "", ""},
	{"SSD four percentages", ssd(attr(197, "Current_Pending_Sector", 0x64646464)), good, "", ""},
	{"SSD pending repeats retired", ssd(attr(5, "Reallocated_Sector_Ct", 33), attr(197, "Current_Pending_Sector", 33)), good, "", ""},
	{"SSD pending of its own", ssd(attr(5, "Reallocated_Sector_Ct", 3), attr(197, "Current_Pending_Sector", 33)), sus, "SSDUncorrectable", ""},
	{"SSD uncorrectable and kernel", ssd(attr(187, "Uncorrectable_Error_Cnt", 10)).with(drivebay.Kernel{MediaErrors24h: 2}), dead, "SSDUncorrectable", "kernel"},
	{"SSD wear", ssd(wearing(177, "Wear_Leveling_Count", 10, 10, 0)), sus, "WearUsed", "90 % of the rated endurance used"},
	{"SSD wear, little", ssd(wearing(177, "Wear_Leveling_Count", 50, 50, 0)), good, "", ""},
	{"Phison counts up", ssd(wearing(231, "SSD_Life_Left", 2, 2, 98), wearing(173, "MaxAvgErase_Ct", 100, 100, 34)), good, "", ""},
	{"Phison, life over", ssd(wearing(231, "SSD_Life_Left", 100, 100, 0), wearing(173, "MaxAvgErase_Ct", 100, 100, 2034)).used(0), sus, "WearUsed", "100 %"},
	{"Phison, new", ssd(wearing(231, "SSD_Life_Left", 0, 0, 100), wearing(173, "MaxAvgErase_Ct", 100, 100, 1)).used(0), good, "", ""},
	{"value and raw value add up to 100, worn", ssd(wearing(202, "Percent_Lifetime_Remain", 2, 2, 98)), sus, "WearUsed", "98 %"},
	{"value and raw value add up to 100, fresh", ssd(wearing(231, "SSD_Life_Left", 2, 2, 98), wearing(173, "Erase_Count", 100, 100, 4)), good, "", ""},
	{"SK hynix counts up", ssd(wearing(233, "Media_Wearout_Indicator", 7, 1, 94), wearing(177, "Wear_Leveling_Count", 94, 1, 96)), good, "", ""},
	{"233 counts NAND writes", ssd(wearing(233, "Media_Wearout_Indicator", 1, 1, 4294967294), wearing(177, "Wear_Leveling_Count", 93, 93, 404)), good, "", ""},
	{"average erase count is 2 of 100 by its value", ssd(wearing(202, "Percent_Lifetime_Remain", 98, 98, 2), wearing(173, "Ave_Block-Erase_Count", 2, 2, 58)), good, "", ""},
	{"the device statistics count more than an attribute", ssd(wearing(231, "SSD_Life_Left", 1, 1, 0)).used(40), good, "", ""},
	{"past the rating is one finding", ssd(wearing(177, "Wear_Leveling_Count", 1, 1, 4219)).used(164), sus, "WearUsed", "164 %"},
	{"SSD wear, no value", ssd(drivebay.Attribute{ID: 177, Name: "Wear_Leveling_Count"}), good, "", ""},
	{"SSD wear at a threshold of 36", ssd(failing(attr(202, "Percent_Lifetime_Remain", 80), false, true)), sus, "SSDWearAttribute", "threshold"},
	{"SSD wear at threshold", ssd(worn(1)), dead, "SSDWearAttribute", "threshold"},
	{"SSD wear at threshold, 0 left", ssd(worn(0)), dead, "SSDWearAttribute", "at 0, the drive's own threshold 1"},
	{"UNC, recent", hdd().hours(1000).log(drivebay.LogUncorrectable, 900), sus, "ATAErrorLog", "100 h ago"},
	{"UNC, a week and an hour ago", hdd().hours(1069).log(drivebay.LogUncorrectable, 900), good, "", ""},
	{"UNC, the hours of the log began again", hdd().hours(65636).log(drivebay.LogUncorrectable, 90), sus, "ATAErrorLog", "10 h ago"},
	{"UNC, of an SSD", ssd().hours(1000).log(drivebay.LogUncorrectable, 999), sus, "ATAErrorLog", ""},
	{"UNC at an unknown time", hdd().log(drivebay.LogUncorrectable, 900), good, "", ""},
	{"UNC before the hours were reset", hdd().hours(60).log(drivebay.LogUncorrectable, 2400), good, "", ""},
	{"ICRC alone", hdd().hours(1000).log(drivebay.LogLink, 999), good, "", ""},
	{"pending beside an old UNC", hdd(attr(197, "Current_Pending_Sector", 1)).hours(9000).log(drivebay.LogUncorrectable, 90), sus, "ATAPendingSectors", ""},
	{"pending defects log", hdd().defects(8), sus, "ATAPendingSectors", "pending defects log 8"},
	{"reallocated by the statistics", hdd(attr(5, "Reallocated_Sector_Ct", 0)).statistic(3, 0x20, 1096), sus, "ATAReallocatedSectors", "137"},
	{"reallocated, a normalized value", hdd(attr(5, "Reallocated_Sector_Ct", 0)).statistic(3, 0x20, 200), good, "", ""},
	{"reported errors by the statistics", hdd().statistic(4, 0x08, 1866), sus, "ATAUncorrectable", "1866"},
	{"reported errors growing", hdd().statistic(4, 0x08, 7).past(hour, one{"ata.reportedErrors": 5}), sus, "ATAUncorrectable", "+2"},
	{"reported errors growing, and the kernel", hdd().statistic(4, 0x08, 7).past(hour, one{"ata.reportedErrors": 5}).with(drivebay.Kernel{MediaErrors24h: 2}), dead, "ATAUncorrectable", "kernel"},
	{"reported errors, few", hdd().statistic(4, 0x08, 12), good, "", ""},
	{"reported errors beside 187", hdd(attr(187, "Reported_Uncorrect", 0)).statistic(4, 0x08, 1866), good, "", ""},
	{"heat", hdd().statistic(5, 0x58, 60).heat(61), sus, "ATAHeat", "60 °C at most"},
	{"as hot as specified", hdd().statistic(5, 0x58, 60).heat(60), good, "", ""},
	{"specified for 40 °C", hdd().statistic(5, 0x58, 40).heat(45), good, "", ""},
	{"evidence that cannot be decoded", hdd().lost(), dunno, "EvidenceLost", ""},
	{"evidence that cannot be decoded, and a fault", hdd(attr(5, "Reallocated_Sector_Ct", 17)).lost(), sus, "ATAReallocatedSectors", ""},
	{"231 is a temperature", ssd(drivebay.Attribute{ID: 231, Name: "Temperature_Celsius", Value: 5}), good, "", ""},
	{"self-test failed", hdd().tests(drivebay.SelfTestFailed), sus, "SelfTest", "100 h"},
	{"self-test failed once, long ago", hdd().tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed), good, "", ""},
	{"self-test failed, then aborted", hdd().tests(drivebay.SelfTestAborted, drivebay.SelfTestFailed), sus, "SelfTest", ""},
	{"self-test failed twice", hdd().tests(drivebay.SelfTestFailed, drivebay.SelfTestRunning, drivebay.SelfTestFailed), dead, "SelfTest", ""},
	{"self-test failed, pending", hdd(attr(197, "Current_Pending_Sector", 1)).tests(drivebay.SelfTestFailed), dead, "SelfTest", "unreadable"},
	{"short self-test passed after a long one failed", hdd().tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("short", "long"), sus, "SelfTest", "long, at 99 h"},
	{"short self-tests passed between", hdd().tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed, drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("short", "long", "short", "long"), dead, "SelfTest", ""},
	{"short self-test passed after a short one failed", hdd().tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("short", "short"), good, "", ""},
	{"long self-test passed", hdd().tests(drivebay.SelfTestPassed, drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("short", "long", "long"), good, "", ""},
	{"selective test passed over the address", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, false), good, "", ""},
	{"selective test passed beside the address", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 2001, false), sus, "SelfTest", "LBA 2001"},
	{"selective test passed before the failure", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestFailed, drivebay.SelfTestPassed).kinds("long", "selective").failedAt(0, 1500, false), sus, "SelfTest", ""},
	{"selective test passed, spans of a later one", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestAborted, drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "selective", "long").failedAt(2, 1500, false), sus, "SelfTest", ""},
	{"selective test passed, spans of one under way", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestRunning, drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "selective", "long").failedAt(2, 1500, false), sus, "SelfTest", ""},
	{"selective test passed, a test of unknown kind under way", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, false).underWay(""), sus, "SelfTest", ""},
	{"selective test passed, a short test under way", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, false).underWay("short"), good, "", ""},
	{"selective test passed, a long test under way", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, false).underWay("long"), good, "", ""},
	{"selective test passed, no spans", hdd().tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, false), sus, "SelfTest", ""},
	{"selective test passed, failure without an address", selectiveOver(0, 2000, 1<<20).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long"), sus, "SelfTest", ""},
	{"selective test passed over one of two failures", selectiveOver(1000, 2000, 1<<20).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed, drivebay.SelfTestFailed).kinds("selective", "long", "long").failedAt(1, 1500, false).failedAt(2, 3000, false), sus, "SelfTest", "LBA 3000"},
	{"selective test passed, address of 28 bits, small drive", selectiveOver(1000, 2000, 100<<30).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, true), good, "", ""},
	{"selective test passed, address of 28 bits, large drive", selectiveOver(1000, 2000, 1<<40).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, true), sus, "SelfTest", ""},
	{"selective test passed, address of 32 bits", selectiveOver(1<<28, 1<<29, 1<<40).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1<<28+5, true), good, "", ""},
	{"selective test passed, address of 32 bits, drive of more blocks", selectiveOver(1<<28, 1<<29, 8<<40).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1<<28+5, true), sus, "SelfTest", ""},
	{"selective test passed, address of 28 bits, size not known", selectiveOver(1000, 2000, 0).tests(drivebay.SelfTestPassed, drivebay.SelfTestFailed).kinds("selective", "long").failedAt(1, 1500, true), sus, "SelfTest", ""},
	{"self-test incomplete", hdd(attr(197, "Current_Pending_Sector", 1)).tests(drivebay.SelfTestFatal), sus, "SelfTest", ""},
}

var judgedNVMe = []judged{
	{"nothing", nvme(nil), good, "", ""},
	{"spare bit", nvme(func(n *drivebay.NVMe) { n.CriticalWarning = 1 }), dead, "NVMeSpare", "reports a low spare (critical warning bit 0): 100 %"},
	{"heat bit", nvme(func(n *drivebay.NVMe) { n.CriticalWarning = 2 }), sus, "NVMeHeat", "bit 1"},
	{"reliability bit", nvme(func(n *drivebay.NVMe) { n.CriticalWarning, n.PercentageUsed = 4, 95 }), dead, "NVMeReliability", "95 %"},
	{"reliability bit, worn", nvme(func(n *drivebay.NVMe) { n.CriticalWarning, n.PercentageUsed = 4, 140 }), sus, "NVMeReliability", "140 %"},
	{"read-only bit", nvme(func(n *drivebay.NVMe) { n.CriticalWarning = 8 }), dead, "NVMeReadOnly", "bit 3"},
	{"backup bit", nvme(func(n *drivebay.NVMe) { n.CriticalWarning = 16 }), sus, "NVMeBackup", "0x10"},
	{"unknown bit", nvme(func(n *drivebay.NVMe) { n.CriticalWarning = 0x80 }), sus, "NVMeBackup", ""},
	{"failed and no bit", nvme(nil).own(drivebay.VerdictFailed), dead, "OwnVerdict", ""},
	{"spare below", nvme(func(n *drivebay.NVMe) { n.AvailableSpare = 9 }), dead, "NVMeSpare", "9 %"},
	{"spare near", nvme(func(n *drivebay.NVMe) { n.AvailableSpare = 19 }), sus, "NVMeSpare", "19 %"},
	{"spare not kept", nvme(func(n *drivebay.NVMe) { n.AvailableSpare, n.SpareThreshold = 0, 0 }), good, "", ""},
	{"spare full, high threshold", nvme(func(n *drivebay.NVMe) { n.SpareThreshold = 95 }), good, "", ""},
	{"used 90", nvme(func(n *drivebay.NVMe) { n.PercentageUsed = 90 }), sus, "WearUsed", "90 %"},
	{"used 255", nvme(func(n *drivebay.NVMe) { n.PercentageUsed = 255 }), sus, "WearUsed", ""},
	{"media error", nvme(func(n *drivebay.NVMe) { n.MediaErrors = 1 }), sus, "NVMeMediaErrors", "errors 1"},
	{"media errors", nvme(func(n *drivebay.NVMe) { n.MediaErrors = 100 }), dead, "NVMeMediaErrors", ""},
	{"media errors growing", nvme(func(n *drivebay.NVMe) { n.MediaErrors = 3 }).past(day, one{"nvme.mediaErrors": 2}), dead, "NVMeMediaErrors", "+1"},
	{"error log", nvme(func(n *drivebay.NVMe) { n.ErrorLogEntries = 3_200_000 }), good, "", ""},
	{"critical temperature", nvme(func(n *drivebay.NVMe) { n.CriticalTemp, n.TemperatureKelvin = 85, 358 }), sus, "NVMeHeat", "85 °C"},
	{"blank log", nvme(func(n *drivebay.NVMe) { *n = drivebay.NVMe{} }), dunno, "EvidenceMissing", ""},
	{"runs out", nvme(func(n *drivebay.NVMe) { n.PercentageUsed = 60 }).past(30*day, one{"percentUsed": 40}), sus, "WearForecast", "60 days (20 % in 30 days)"},
	{"removal hangs", Input{Protocol: drivebay.ProtocolNVMe, Now: t0, Evidence: nvme(nil).Evidence, Kernel: &drivebay.Kernel{State: "deleting (no IO)"}}, sus, "NVMeController", ""},
	{"connecting", Input{Protocol: drivebay.ProtocolNVMe, Now: t0, Evidence: nvme(nil).Evidence, Kernel: &drivebay.Kernel{State: "connecting"}}, sus, "NVMeController", ""},
}

var judgedSCSI = []judged{
	{"nothing", scsi(nil), good, "", ""},
	{"prediction", scsi(func(s *drivebay.SCSI) { s.ASC, s.ASCQ = 0x5D, 0x10 }).own(drivebay.VerdictFailed), dead, "OwnVerdict", ""},
	{"prediction alone", scsi(func(s *drivebay.SCSI) { s.ASC = 0x5D }), dead, "SCSIPrediction", "5D/00"},
	{"prediction test", scsi(func(s *drivebay.SCSI) { s.ASC, s.ASCQ = 0x5D, 0xFF }), good, "", ""},
	{"heat", scsi(func(s *drivebay.SCSI) { s.ASC, s.ASCQ = 0x0B, 1 }).own(drivebay.VerdictFailed), sus, "OwnVerdict", "temperature"},
	{"warning", scsi(func(s *drivebay.SCSI) { s.ASC, s.ASCQ = 0x0B, 3 }), sus, "SCSIPrediction", "0B/03"},
	{"grown 9", scsi(func(s *drivebay.SCSI) { s.GrownDefects = p(uint64(9)) }), good, "", ""},
	{"grown 10", scsi(func(s *drivebay.SCSI) { s.GrownDefects = p(uint64(10)) }), sus, "SCSIGrownDefects", "10"},
	{"grown 1000", scsi(func(s *drivebay.SCSI) { s.GrownDefects = p(uint64(1000)) }), dead, "SCSIGrownDefects", ""},
	{"grown by 100", scsi(func(s *drivebay.SCSI) { s.GrownDefects = p(uint64(105)) }).past(2*day, one{"scsi.grownDefects": 5}), dead, "SCSIGrownDefects", "+100"},
	{"uncorrected", scsi(func(s *drivebay.SCSI) {
		s.ErrorCounters = map[string]drivebay.ErrorCounter{"read": {Uncorrected: 1}, "write": {Corrected: 1 << 40}}
	}), sus, "SCSIUncorrected", "errors 1"},
	{"uncorrected 10", scsi(func(s *drivebay.SCSI) {
		s.ErrorCounters = map[string]drivebay.ErrorCounter{"read": {Uncorrected: 4}, "verify": {Uncorrected: 6}}
	}), dead, "SCSIUncorrected", ""},
	{"uncorrected growing", scsi(func(s *drivebay.SCSI) {
		s.ErrorCounters = map[string]drivebay.ErrorCounter{"read": {Uncorrected: 4}}
	}).past(day, one{"scsi.uncorrected": 3}), dead, "SCSIUncorrected", "+1"},
	{"non-medium", scsi(func(s *drivebay.SCSI) { s.NonMedium = p(uint64(57_000_000)) }), good, "", ""},
	{"pending", scsi(func(s *drivebay.SCSI) { s.PendingDefects = p(uint64(1)) }), sus, "SCSIPendingDefects", ""},
	{"pending 50", scsi(func(s *drivebay.SCSI) { s.PendingDefects = p(uint64(50)) }), dead, "SCSIPendingDefects", ""},
	{"scan halted", scsi(func(s *drivebay.SCSI) { s.BackgroundScan = p(uint8(3)) }), dead, "SCSIBackgroundScan", ""},
	{"scan waits", scsi(func(s *drivebay.SCSI) { s.BackgroundScan = p(uint8(8)) }), good, "", ""},
	{"trip", func() Input {
		in := scsi(func(s *drivebay.SCSI) { s.TripTemperature = p(65) })
		in.Evidence.Temperature = p(65)
		return in
	}(), sus, "SCSIHeat", "65 °C"},
}

var judgedKernel = []judged{
	{"virtual and quiet", kernel(drivebay.Kernel{State: "running", IOErrors: p(uint64(7))}), good, "", ""},
	{"offline", kernel(drivebay.Kernel{State: "offline"}), dead, "KernelOffline", ""},
	{"dead", kernel(drivebay.Kernel{State: "dead"}), dead, "KernelOffline", "dead"},
	{"size zero", kernel(drivebay.Kernel{SizeZero: true, Zero: time.Second}), dead, "KernelSizeZero", ""},
	{"no size yet", kernel(drivebay.Kernel{SizeZero: true, Zero: 999 * time.Millisecond}), good, "", ""},
	{"shrank", func() Input {
		in := kernel(drivebay.Kernel{})
		in.SizeIssue = "it has 1 bytes and had 2"
		return in
	}(), dead, "DriveShrank", "it has 1 bytes and had 2"},
	{"ENXIO", kernel(drivebay.Kernel{OpenError: "no such device or address"}), dead, "KernelOpen", ""},
	{"EACCES", kernel(drivebay.Kernel{OpenError: "permission denied"}), dunno, "KernelOpen", "permission"},
	{"frozen", kernel(drivebay.Kernel{Frozen: 5 * time.Second, Inflight: 3}), sus, "KernelFrozen", "3 requests"},
	{"frozen long", kernel(drivebay.Kernel{Frozen: time.Minute}), dead, "KernelFrozen", "1m0s"},
	{"silent", kernel(drivebay.Kernel{LaneStuck: 20 * time.Second}), sus, "KernelSilent", ""},
	{"silent long", kernel(drivebay.Kernel{LaneStuck: 3 * time.Minute}), dead, "KernelSilent", ""},
	{"media", kernel(drivebay.Kernel{MediaErrors24h: 1, LastLog: "critical medium error"}), sus, "KernelMediaErrors", "critical medium error"},
	{"media 10", kernel(drivebay.Kernel{MediaErrors24h: 10}), dead, "KernelMediaErrors", ""},
	{"other errors", kernel(drivebay.Kernel{OtherErrors24h: 10}), sus, "KernelErrors", ""},
	{"errors of its absence", kernel(drivebay.Kernel{OtherErrors24h: 19, LeftErrors: 10}), good, "", ""},
	{"errors beside those of its absence", kernel(drivebay.Kernel{OtherErrors24h: 20, LeftErrors: 10}), sus, "KernelErrors", "10 errors"},
	{"error counter", kernel(drivebay.Kernel{IOErrors: p(uint64(30))}).past(30*time.Minute, one{"kernel.ioErrors": 10}), sus, "KernelErrors", "20"},
	{"timeouts", kernel(drivebay.Kernel{IOTimeouts: p(uint64(3))}).past(30*time.Minute, one{"kernel.ioTimeouts": 0}), sus, "KernelTimeouts", "3 commands timed out or failed in 1 h"},
	{"timeouts of yesterday", kernel(drivebay.Kernel{IOTimeouts: p(uint64(3))}).past(day, one{"kernel.ioTimeouts": 0}), good, "", ""},
	{"timeouts and a reset", kernel(drivebay.Kernel{IOTimeouts: p(uint64(6)), Resets1h: 1}).past(30*time.Minute, one{"kernel.ioTimeouts": 0}), sus, "KernelTimeouts", "6 commands timed out or failed and 1 reset in 1 h"},
	{"resets", kernel(drivebay.Kernel{Resets1h: 3}), sus, "KernelTimeouts", "3 resets in 1 h"},
	{"left and was back", Input{Now: t0, Kernel: &drivebay.Kernel{}, Returns: 5}, sus, "DriveReturns", "5 times in 24 h"},
	{"filesystem", kernel(drivebay.Kernel{Filesystems: []drivebay.FSError{{Device: "dm-3", FS: "ext4", Errors: 2}}}), sus, "FilesystemErrors", "ext4 on dm-3"},
}

func silent(proto drivebay.Protocol, problems ...drivebay.Problem) Input {
	return Input{Now: t0, Protocol: proto, Evidence: &drivebay.Evidence{At: t0, Protocol: proto, Problems: problems}}
}

var judgedSilence = []judged{
	{"nobody to ask", Input{Now: t0}, good, "", ""},
	{"never asked", Input{Now: t0, Protocol: drivebay.ProtocolATA}, dunno, "EvidenceMissing", "not read yet"},
	{"ATA gave nothing", silent(drivebay.ProtocolATA), dunno, "EvidenceMissing", ""},
	{"ATA failed", silent(drivebay.ProtocolATA, drivebay.Problem{Page: "ata-smart-data", Text: "short page"}), dunno, "EvidenceMissing", "short page"},
	{"ATA without SMART", silent(drivebay.ProtocolATA, drivebay.Problem{Text: "no SMART", Expected: true}), good, "", ""},
	{"SCSI never promised", silent(drivebay.ProtocolSCSI), good, "", ""},
	{"SCSI failed", silent(drivebay.ProtocolSCSI, drivebay.Problem{Text: "x", Expected: true}, drivebay.Problem{Page: "scsi-log-2f", Text: "timeout"}), dunno, "EvidenceMissing", "timeout"},
	{"NVMe without a log", silent(drivebay.ProtocolNVMe).own(drivebay.VerdictPassed), good, "", ""},
	{"NVMe with a broken log", silent(drivebay.ProtocolNVMe, drivebay.Problem{Page: "nvme-smart-log", Text: "all zero"}).own(drivebay.VerdictPassed), dunno, "EvidenceMissing", "all zero"},
	{"NVMe status, and a warning of the tool", silent(drivebay.ProtocolNVMe, drivebay.Problem{Text: "no error log"}).own(drivebay.VerdictPassed), good, "", ""},
	{"verdict alone", silent(drivebay.ProtocolATA).own(drivebay.VerdictPassed), good, "", ""},
	{"stale", func() Input { in := hdd(); in.Evidence.At = t0.Add(-31 * time.Minute); return in }(), dunno, "EvidenceStale", "31 min"},
	{"gone, its evidence old", func() Input {
		in := hdd()
		in.Evidence.At, in.Gone = t0.Add(-99*time.Hour), t0.Add(-98*time.Hour)
		return in
	}(), dunno, "DriveOffline", "absent from the machine"},
	{"asleep", func() Input {
		in := hdd()
		in.Evidence.At, in.Evidence.Standby = t0.Add(-99*time.Hour), true
		return in
	}(), good, "", ""},
	{"no clock", func() Input { in := hdd(); in.Evidence.At, in.Now = t0.Add(-99*time.Hour), time.Time{}; return in }(), good, "", ""},
}

func allJudged() map[string][]judged {
	return map[string][]judged{"ata": judgedATA, "nvme": judgedNVMe, "scsi": judgedSCSI, "kernel": judgedKernel, "silence": judgedSilence}
}

func TestAssess(t *testing.T) {
	met := map[string]bool{}
	for group, cases := range allJudged() {
		for _, tt := range cases {
			t.Run(group+"/"+tt.name, func(t *testing.T) {
				found := Assess(tt.in, Default())
				if got := drivebay.WorstOf(found); got != tt.want {
					t.Fatalf("%v, want %v: %+v", got, tt.want, found)
				}
				for _, f := range found {
					met[f.Code] = true
					if f.Text == "" || f.Advice == "" || f.Severity == good {
						t.Errorf("a finding that explains nothing: %+v", f)
					}
				}
				if tt.code == "" {
					return
				}
				for _, f := range found {
					if f.Code == tt.code && f.Severity == tt.want && strings.Contains(f.Text, tt.text) {
						return
					}
				}
				t.Errorf("no finding %s %v with %q: %+v", tt.code, tt.want, tt.text, found)
			})
		}
	}
	for _, r := range Rules() {
		if !met[r.Code] {
			t.Errorf("no case ever makes rule %s speak", r.Code)
		}
	}
}

func TestAssessLeavesItsInput(t *testing.T) {
	in := hdd(attr(5, "Reallocated_Sector_Ct", 2000)).past(day, one{"ata.5": 1})
	Assess(in, Default())
	if in.Evidence.ATA.Attributes[0].Count != 2000 || len(in.History) != 1 {
		t.Errorf("changed: %+v", in)
	}
	if Assess(in, Default())[0].Since != t0 {
		t.Error("a finding has no time")
	}
}
