package pages

import (
	"fmt"
	"math"
	"slices"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// scsi encodes the pages of a SCSI drive, and those of the translator in front of a SATA drive.
type scsi struct{ *State }

var scsiPages = map[host.Page]func(scsi) []byte{
	host.SCSITestUnitReady: func(scsi) []byte { return []byte{0, 0, 0} },
	host.SCSIInquiry:       scsi.inquiry,
	host.SCSIVPDSupported:  scsi.vpdSupported,
	host.SCSIVPDSerial:     scsi.vpdSerial,
	host.SCSIVPDDeviceID:   func(d scsi) []byte { return d.vpdIDs(0) },
	host.SCSIVPDATA:        scsi.vpdATAOrNone,
	host.SCSIVPDBlockChar:  scsi.vpdBlock,
	host.SCSICapacity:      scsi.capacity,
	host.SCSILogSupported:  scsi.logSupported,
	host.SCSILogWrite:      func(d scsi) []byte { return d.logErrors(0x02, d.Age.Written) },
	host.SCSILogRead:       func(d scsi) []byte { return d.logErrors(0x03, d.Age.Written/2) },
	host.SCSILogVerify:     func(d scsi) []byte { return d.logErrors(0x05, 0) },
	host.SCSILogNonMedium:  func(d scsi) []byte { return d.log(0x06, 0, param{0, d.number32(17)}) },
	host.SCSILogTemp:       scsi.logTemp,
	host.SCSILogStartStop:  scsi.logStartStop,
	host.SCSILogSelfTest:   scsi.logSelfTests,
	host.SCSILogSSD:        scsi.logSSD,
	host.SCSILogBackground: scsi.logBackground,
	host.SCSIPending:       func(d scsi) []byte { return d.log(0x15, 1, param{0, be.AppendUint32(nil, uint32(d.Age.Pending))}) },
	host.SCSILogIE:         scsi.logIE,
	host.SCSIGrownDefects:  scsi.grownDefects,
}

// inquiry returns standard INQUIRY data (SPC-5, 6.7.2).
func (d scsi) inquiry() []byte {
	b := make([]byte, 96)
	b[2], b[3], b[4], b[7] = 7, 0x12, byte(len(b)-5), 0x02
	copy(b[8:36], fmt.Sprintf("%-8.8s%-16.16s%-4.4s", d.Vendor, d.Model, d.Revision()))
	if d.Family() == host.FamilySCSI {
		copy(b[36:56], fmt.Sprintf("%-20.20s", d.Serial))
	}
	return b
}

// vpdSupported returns the list of pages (SPC-5, 7.7.16).
func (d scsi) vpdSupported() []byte {
	list := []byte{0x00, 0x80, 0x83, 0x89, 0xB1}
	if d.Family() != host.FamilyATA {
		list = slices.DeleteFunc(list, func(p byte) bool { return p == 0x89 })
	}
	return vpdPage(0x00, list)
}

func (d scsi) vpdSerial() []byte { return vpdPage(0x80, []byte(d.Serial)) }

// vpdIDs returns device identification (SPC-5, 7.7.6): the names of the unit and the port, or a T10
// name without a world wide name.
func (d scsi) vpdIDs(path int) []byte {
	var data []byte
	if d.Family() == host.FamilyATA || d.WWN == 0 {
		t10 := fmt.Sprintf("%-8.8s%-40.40s%-20.20s", d.Vendor, d.Model, d.Serial)
		data = append(append(data, 0x02, 0x01, 0, byte(len(t10))), t10...)
	}
	if d.WWN != 0 {
		data = be.AppendUint64(append(data, 0x01, 0x03, 0, 8), d.WWN)
		data = be.AppendUint64(append(data, 0x61, 0x93, 0, 8), d.WWN+uint64(path)+1)
	}
	return vpdPage(0x83, data)
}

func (d scsi) vpdATAOrNone() []byte {
	if d.Family() != host.FamilyATA {
		return nil
	}
	return d.vpdATA()
}

// vpdATA returns the ATA information page (SAT-4, 12.4.2) with the drive's identify data.
func (d scsi) vpdATA() []byte {
	data := make([]byte, 56+sector)
	copy(data[4:], fmt.Sprintf("%-8s%-16s%-4s", "LSI", "SIM SATA", "1.0"))
	data[52] = 0xEC
	copy(data[56:], ata(d).identify())
	return vpdPage(0x89, data)
}

// vpdBlock returns block device characteristics (SBC-4, 6.6.2).
func (d scsi) vpdBlock() []byte {
	data := make([]byte, 60)
	be.PutUint16(data, uint16(max(d.Kind.RPM, 1)))
	data[3] = 2 // 3.5 inch
	return vpdPage(0xB1, data)
}

// capacity returns READ CAPACITY (16) (SBC-4, 5.20).
func (d scsi) capacity() []byte {
	b := make([]byte, 32)
	be.PutUint64(b, d.Size/d.Block-1)
	be.PutUint32(b[8:], uint32(d.Block))
	if d.Block == 512 && d.Kind.Rotational {
		b[13] = 3 // eight logical blocks per physical block
	}
	return b
}

// param is a log parameter (SPC-5, 7.3.2.2).
type param struct {
	code uint16
	data []byte
}

// log returns a LOG SENSE page. A USB bridge has none.
func (d scsi) log(code, subpage byte, params ...param) []byte {
	if d.Kind.Name == model.KindUSB {
		return nil
	}
	var body []byte
	for _, p := range params {
		body = be.AppendUint16(body, p.code)
		body = append(body, 0x03, byte(len(p.data)))
		body = append(body, p.data...)
	}
	head := []byte{code, subpage, 0, 0}
	if subpage != 0 {
		head[0] |= 0x40
	}
	be.PutUint16(head[2:], uint16(len(body)))
	return append(head, body...)
}

// number32 and number64 encode counters; the fault counters-max sets them to the maximum.
func (d scsi) number32(n uint64) []byte {
	if d.Spoilt.CountersMax {
		n = math.MaxUint32
	}
	return be.AppendUint32(nil, uint32(min(n, math.MaxUint32)))
}

func (d scsi) number64(n uint64) []byte {
	if d.Spoilt.CountersMax {
		n = 1<<48 - 1
	}
	return be.AppendUint64(nil, n)
}

func (d scsi) logSupported() []byte {
	if d.Kind.Name == model.KindUSB {
		return nil
	}
	list := []byte{0x00, 0x02, 0x03, 0x05, 0x06, 0x0D, 0x0E, 0x10, 0x15, 0x2F}
	if d.Kind.RPM == 0 {
		list = []byte{0x00, 0x02, 0x03, 0x05, 0x06, 0x0D, 0x10, 0x11, 0x15, 0x2F}
	}
	return append([]byte{0, 0, 0, byte(len(list))}, list...)
}

// logErrors returns an error counter page (SPC-5, 7.3.8). Only the page of reads counts uncorrected
// errors.
func (d scsi) logErrors(code byte, bytes uint64) []byte {
	var fast, bad uint64
	if code == 0x03 {
		fast, bad = d.Age.Reallocated*3+120, d.Age.Uncorrectable
	}
	return d.log(code, 0, param{0, d.number32(fast)}, param{1, d.number32(0)}, param{2, d.number32(0)}, param{3, d.number32(fast)},
		param{4, d.number32(fast + bad)}, param{5, d.number64(bytes)}, param{6, d.number32(bad)})
}

// logTemp returns page 0Dh: the temperature and its limit.
func (d scsi) logTemp() []byte {
	return d.log(0x0D, 0, param{0, []byte{0, byte(d.Age.Temperature)}}, param{1, []byte{0, tripTemp}})
}

const tripTemp = 60

// logStartStop returns page 0Eh: date of manufacture, rated cycles and cycles so far.
func (d scsi) logStartStop() []byte {
	if d.Kind.RPM == 0 {
		return nil
	}
	return d.log(0x0E, 0, param{1, []byte("202319")}, param{3, be.AppendUint32(nil, 50000)}, param{4, d.number32(d.Age.PowerCycles)},
		param{5, be.AppendUint32(nil, 600000)}, param{6, d.number32(d.Age.PowerCycles + 1000)})
}

// logSelfTests returns page 10h, 20 results (SPC-5, 7.3.18). A running test is the first.
func (d scsi) logSelfTests() []byte {
	all := d.Tests
	if d.Running != nil {
		all = append([]TestResult{{Kind: d.Running.kind, Result: testRunning}}, all...)
	}
	params := make([]param, 20)
	for i := range params {
		params[i] = param{uint16(i + 1), make([]byte, 16)}
		if i >= len(all) {
			continue
		}
		t, e := all[i], params[i].data
		e[0] = t.Kind<<5 | t.Result
		be.PutUint16(e[2:], uint16(min(t.Hours, 0xFFFF)))
		be.PutUint64(e[4:], math.MaxUint64)
		if t.Result == TestFailed {
			be.PutUint64(e[4:], t.Lba)
			e[12], e[13] = 0x03, 0x11 // medium error, unrecovered read error
		}
	}
	return d.log(0x10, 0, params...)
}

// logSSD returns page 11h: percentage of the endurance used (SBC-4, 6.4.11).
func (d scsi) logSSD() []byte {
	if d.Kind.RPM > 0 {
		return nil
	}
	used := byte(d.Age.PercentageUsed)
	if d.Spoilt.CountersMax {
		used = 255
	}
	return d.log(0x11, 0, param{1, []byte{0, 0, 0, used}})
}

// logBackground returns page 15h: minutes powered on and the scan's status (SBC-4, 6.4.2); 8 is
// waiting between scans.
func (d scsi) logBackground() []byte {
	data := make([]byte, 12)
	be.PutUint32(data, uint32(min(d.Hours()*60, math.MaxUint32)))
	data[5] = 8
	be.PutUint16(data[6:], 42)
	return d.log(0x15, 0, param{0, data})
}

// logIE returns informational exceptions (SPC-5, 7.3.12): 5Dh predicts a failure, 0Bh/01h warns of
// heat.
func (d scsi) logIE() []byte {
	data := []byte{0, 0, byte(d.Age.Temperature), tripTemp}
	switch {
	case d.Age.Failed:
		data[0], data[1] = 0x5D, 0x10
	case d.Age.Temperature > tripTemp:
		data[0], data[1] = 0x0B, 0x01
	}
	return d.log(0x2F, 0, param{0, data})
}

// grownDefects returns the header of READ DEFECT DATA (12) (SBC-4, 5.21): the grown list, physical
// sectors of 8 bytes each.
func (d scsi) grownDefects() []byte {
	if d.Kind.Name == model.KindUSB {
		return nil
	}
	b := make([]byte, 8)
	b[1] = 0x08 | 0x05
	be.PutUint32(b[4:], uint32(8*min(d.Age.Reallocated, 1<<20)))
	return b
}

// vpdPage adds the header of a vital product data page (SPC-5, 7.7): code, then length.
func vpdPage(code byte, data []byte) []byte {
	page := []byte{0, code, 0, 0}
	be.PutUint16(page[2:], uint16(len(data)))
	return append(page, data...)
}

// KernelCopies returns the pages of which the kernel keeps a copy in sysfs, by the name of the file.
func (s *State) KernelCopies(path int) map[string][]byte {
	d := scsi{s}
	copies := map[string][]byte{"inquiry": d.inquiry(), "vpd_pg0": d.vpdSupported(), "vpd_pg80": d.vpdSerial(), "vpd_pg83": d.vpdIDs(path), "vpd_pgb1": d.vpdBlock()}
	if s.Family() == host.FamilyATA {
		copies["vpd_pg89"] = d.vpdATA()
	}
	return copies
}
