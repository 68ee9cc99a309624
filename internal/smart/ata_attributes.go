package smart

import (
	"slices"

	"github.com/drivebay/drivebay"
)

const (
	pageData       = "ata-smart-data"
	pageThresholds = "ata-smart-thresholds"
	pageStatus     = "ata-smart-status"
)

// The attribute table and the threshold table have 30 slots of 12 bytes from
// byte 2 (ATA/ATAPI-5, SMART READ DATA; ATA-3, SMART READ THRESHOLDS).
const (
	slots    = 30
	slotSize = 12
	slotBase = 2
)

// selfTestState is the byte of SMART data with the self-test execution status.
const selfTestState = 363

// ATASmartData decodes SMART READ DATA and replaces the attributes. Their thresholds are decoded
// after them.
func ATASmartData(ev *drivebay.Evidence, b []byte) error {
	if err := summed(pageData, b); err != nil {
		return err
	}
	var found []drivebay.Attribute
	for i := range slots {
		// A slot of id 0 is unused; real drives have attributes in slots after one.
		if slot := b[slotBase+i*slotSize:][:slotSize]; slot[0] != 0 {
			found = append(found, drivebay.Attribute{ID: slot[0], Prefail: slot[1]&1 != 0,
				Value: slot[3], Worst: slot[4], Raw: uint64(le.Uint32(slot[5:])) | uint64(le.Uint16(slot[9:]))<<32})
		}
	}
	if ev.Type == drivebay.TypeUnknown {
		ev.Type = mediumOf(found)
	}
	name(found, ev.Identity, ev.Type)
	a := ata(ev)
	a.SMARTSupported, a.SMARTEnabled, a.Attributes = true, true, found // the drive has answered SMART READ DATA
	if state := b[selfTestState]; ataResults[state>>4] == drivebay.SelfTestRunning {
		left := min(int(state&0xF)*10, 100)
		ev.SelfTestProgress = &left
	}
	totals(ev)
	return nil
}

// ATASmartThresholds decodes SMART READ THRESHOLDS and compares the attributes, which must be
// decoded already, with them.
func ATASmartThresholds(ev *drivebay.Evidence, b []byte) error {
	if err := summed(pageThresholds, b); err != nil {
		return err
	}
	if ev.ATA == nil || len(ev.ATA.Attributes) == 0 {
		return ignored(pageThresholds, "no attributes to compare the thresholds with")
	}
	for i := range slots {
		slot := b[slotBase+i*slotSize:][:slotSize]
		for j := range ev.ATA.Attributes {
			if a := &ev.ATA.Attributes[j]; slot[0] != 0 && a.ID == slot[0] {
				judge(a, slot[1])
			}
		}
	}
	return nil
}

// judge compares an attribute with its threshold. 0 is the threshold that is always passed and FFh
// the one that always fails (ATA-3, 5.19: "always passing", "always failing"). Values outside
// 1..253 are compared unchanged, as smartctl does, so that a drive that writes 0 gains nothing.
func judge(a *drivebay.Attribute, threshold uint8) {
	a.Threshold = &threshold
	a.FailedNow = threshold > 0 && a.Value <= threshold
	a.FailedPast = threshold > 0 && !a.FailedNow && a.Worst <= threshold
}

// ATASmartStatus decodes the two signature bytes (LBA 15:8 and 23:16) of SMART RETURN STATUS: 4Fh
// C2h for a drive within its thresholds, F4h 2Ch for a drive beyond them (ACS-3, 7.48.8).
func ATASmartStatus(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageStatus, b, 2); err != nil {
		return err
	}
	switch {
	case b[0] == 0x4F && b[1] == 0xC2:
		ev.Verdict = drivebay.VerdictPassed
	case b[0] == 0xF4 && b[1] == 0x2C:
		ev.Verdict = drivebay.VerdictFailed
	default:
		return ignored(pageStatus, "%02Xh %02Xh means neither passed nor failed", b[0], b[1])
	}
	return nil
}

var (
	// platterIDs holds the attributes of drives with a spindle, heads or a shock sensor.
	platterIDs = []uint8{7, 8, 10, 11, 191, 193, 220, 222, 223, 224}
	// flashIDs holds the attributes of drives with erase blocks.
	flashIDs = []uint8{169, 170, 171, 172, 173, 176, 177, 178, 179, 231, 232, 233}
)

// mediumOf derives the type of a drive that does not report it (before ATA8) from its attributes.
func mediumOf(found []drivebay.Attribute) drivebay.Type {
	has := func(ids []uint8) bool {
		return slices.ContainsFunc(found, func(a drivebay.Attribute) bool { return slices.Contains(ids, a.ID) })
	}
	switch {
	case has(platterIDs):
		return drivebay.TypeHDD
	case has(flashIDs):
		return drivebay.TypeSSD
	}
	return drivebay.TypeUnknown
}

// units holds the names of attributes that count data, with their unit in bytes; 0 stands for the
// logical sector of the drive.
var units = map[string]uint64{
	"Total_LBAs_Written": 0, "Total_LBAs_Read": 0,
	"Host_Writes_32MiB": 32 << 20, "Host_Reads_32MiB": 32 << 20,
	"Host_Writes_MiB": 1 << 20, "Host_Reads_MiB": 1 << 20,
	"Host_Writes_GiB": 1 << 30, "Host_Reads_GiB": 1 << 30,
	"Lifetime_Writes_GiB": 1 << 30, "Lifetime_Reads_GiB": 1 << 30,
	"Total_Writes_GiB": 1 << 30, "Total_Reads_GiB": 1 << 30,
	"Total_Writes_GB": 1e9, "Total_Reads_GB": 1e9,
}

// totals fills the common fields from attributes whose name shows their meaning. The device
// statistics log is the better source and is decoded later.
func totals(ev *drivebay.Evidence) {
	for i := range ev.ATA.Attributes {
		a := &ev.ATA.Attributes[i]
		switch a.ID {
		case 9:
			if hourly[a.Name] {
				first(&ev.PowerOnHours, a.Count)
			}
		case 12:
			first(&ev.PowerCycles, a.Count)
		case 225, 241, 246:
			amount(&ev.BytesWritten, ev.ATA, a)
		case 242:
			amount(&ev.BytesRead, ev.ATA, a)
		}
	}
	for _, id := range []uint8{194, 190} {
		for _, a := range ev.ATA.Attributes {
			// A byte of 0 means that there is no sensor, one over 127 that the sensor is broken.
			if a.ID == id && celsius[a.Name] && a.Count > 0 && a.Count < 128 {
				first(&ev.Temperature, int(a.Count))
			}
		}
	}
}

func amount(into **uint64, ata *drivebay.ATA, a *drivebay.Attribute) {
	unit, known := units[a.Name]
	if unit == 0 {
		unit = sectorOf(ata)
	}
	if known {
		first(into, times(a.Count, unit))
	}
}
