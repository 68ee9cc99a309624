package smart

import (
	"fmt"
	"math"

	"github.com/drivebay/drivebay"
)

// parameter is one log parameter (SPC-5, 7.3.2.2).
type parameter struct {
	code uint16
	data []byte
}

// number returns a counter of any length, limited to the largest uint64.
func (p parameter) number() (n uint64) {
	for _, x := range p.data {
		if n > math.MaxUint64>>8 {
			return math.MaxUint64
		}
		n = n<<8 | uint64(x)
	}
	return n
}

// logPage holds the name and the codes of a LOG SENSE page.
type logPage struct {
	name          string
	code, subpage byte
}

// SCSILogPages checks the list of supported log pages, page 00h (SPC-5, 7.3.16), which has nothing for the
// evidence. A drive is asked for the pages in it alone: one that is empty or cut short would leave out what
// shows a fault, and nothing would say so.
func SCSILogPages(_ *drivebay.Evidence, b []byte) error {
	const name = "scsi-log-00"
	if err := atLeast(name, b, 4); err != nil {
		return err
	}
	switch want := int(be.Uint16(b[2:])); {
	case b[0]&0x7F != 0: // without DS
		return ignored(name, "the page has the number %02Xh", b[0]&0x3F)
	case want == 0:
		return ignored(name, "the list is empty")
	case len(b) < 4+want:
		return ignored(name, "the list is truncated: %d of %d bytes", len(b), 4+want)
	}
	return nil
}

// read returns the complete parameters of a page. A page that is cut short gives those before the
// cut and a Problem.
func (l logPage) read(ev *drivebay.Evidence, b []byte) ([]parameter, error) {
	if err := atLeast(l.name, b, 4); err != nil {
		return nil, err
	}
	code, subpage := b[0]&0x3F, byte(0)
	if b[0]&0x40 != 0 { // SPF: byte 1 is a subpage code
		subpage = b[1]
	}
	if code != l.code || subpage != l.subpage {
		return nil, ignored(l.name, "the page has the number %02Xh, subpage %02Xh", code, subpage)
	}
	want := int(be.Uint16(b[2:]))
	rest := b[4:min(4+want, len(b))]
	var found []parameter
	for len(rest) >= 4 && len(rest) >= 4+int(rest[3]) {
		n := 4 + int(rest[3])
		found = append(found, parameter{be.Uint16(rest), rest[4:n]})
		rest = rest[n:]
	}
	switch {
	case len(found) == 0:
		return nil, ignored(l.name, "no complete parameter in %d bytes", len(b))
	case len(b) < 4+want || len(rest) > 0:
		damaged(ev, l.name, "the page is truncated: %d of %d bytes; %d complete parameters are used", len(b), 4+want, len(found))
	}
	return found, nil
}

// log decodes a page with a table of parameters: it calls take for each code of the table with
// enough data. It refuses a page without any of them.
func (l logPage) log(ev *drivebay.Evidence, b []byte, table map[uint16]field) error {
	scratch := drivebay.Evidence{}
	found, err := l.read(&scratch, b)
	if err != nil {
		return err
	}
	used := 0
	for _, p := range found {
		if f, known := table[p.code]; known && len(p.data) >= f.size {
			f.take(p)
			used++
		}
	}
	if used == 0 {
		return ignored(l.name, "none of the %d parameters is one that the page must contain", len(found))
	}
	ev.Problems = append(ev.Problems, scratch.Problems...)
	return nil
}

// field decodes one parameter of at least size bytes.
type field struct {
	size int
	take func(parameter)
}

// SCSILogWrite, SCSILogRead and SCSILogVerify decode the error counter pages
// 02h, 03h and 05h (SPC-5, 7.3.8).
func SCSILogWrite(ev *drivebay.Evidence, b []byte) error {
	return errorCounters(ev, b, logPage{"scsi-log-02", 0x02, 0}, "write", &ev.BytesWritten)
}

func SCSILogRead(ev *drivebay.Evidence, b []byte) error {
	return errorCounters(ev, b, logPage{"scsi-log-03", 0x03, 0}, "read", &ev.BytesRead)
}

func SCSILogVerify(ev *drivebay.Evidence, b []byte) error {
	var none *uint64
	return errorCounters(ev, b, logPage{"scsi-log-05", 0x05, 0}, "verify", &none)
}

func errorCounters(ev *drivebay.Evidence, b []byte, l logPage, what string, total **uint64) error {
	var c drivebay.ErrorCounter
	bytes := false
	into := func(n *uint64) field { return field{1, func(p parameter) { *n = p.number() }} }
	err := l.log(ev, b, map[uint16]field{
		0: into(&c.CorrectedFast), 1: into(&c.CorrectedDelayed), 2: into(&c.Rereads), 3: into(&c.Corrected),
		4: into(&c.Invocations), 5: {1, func(p parameter) { c.Bytes, bytes = p.number(), true }}, 6: into(&c.Uncorrected),
	})
	if err != nil {
		return err
	}
	s := scsi(ev)
	if s.ErrorCounters == nil {
		s.ErrorCounters = map[string]drivebay.ErrorCounter{}
	}
	s.ErrorCounters[what] = c
	if bytes {
		*total = &c.Bytes
	}
	return nil
}

// SCSILogNonMedium decodes page 06h: errors that do not concern the medium.
func SCSILogNonMedium(ev *drivebay.Evidence, b []byte) error {
	var n uint64
	err := logPage{"scsi-log-06", 0x06, 0}.log(ev, b, map[uint16]field{0: {1, func(p parameter) { n = p.number() }}})
	if err == nil {
		scsi(ev).NonMedium = &n
	}
	return err
}

// notKnown is the temperature of a drive that does not report it (SPC-5, 7.3.21).
const notKnown = 0xFF

// SCSILogTemp decodes page 0Dh: the temperature and its upper limit.
func SCSILogTemp(ev *drivebay.Evidence, b []byte) error {
	now, trip := byte(notKnown), byte(notKnown)
	err := logPage{"scsi-log-0d", 0x0D, 0}.log(ev, b, map[uint16]field{
		0: {2, func(p parameter) { now = p.data[1] }},
		1: {2, func(p parameter) { trip = p.data[1] }},
	})
	if err != nil {
		return err
	}
	if now != notKnown {
		t := int(now)
		ev.Temperature = &t
	}
	if trip != notKnown && trip != 0 {
		t := int(trip)
		scsi(ev).TripTemperature = &t
	}
	return nil
}

// SCSILogStartStop decodes page 0Eh: parameter 4 is the number of start-stop cycles so far.
func SCSILogStartStop(ev *drivebay.Evidence, b []byte) error {
	var n uint64
	err := logPage{"scsi-log-0e", 0x0E, 0}.log(ev, b, map[uint16]field{4: {4, func(p parameter) { n = p.number() }}})
	if err == nil && n != math.MaxUint32 { // all ones: the drive does not count
		scsi(ev).StartStops = &n
	}
	return err
}

var (
	scsiKinds   = map[byte]string{1: "short", 2: "long", 5: "short", 6: "long"} // 5 and 6 in the foreground
	scsiResults = [16]drivebay.SelfTestResult{
		0x0: drivebay.SelfTestPassed, 0x1: drivebay.SelfTestAborted, 0x2: drivebay.SelfTestAborted, 0x3: drivebay.SelfTestFatal,
		0x4: drivebay.SelfTestFailed, 0x5: drivebay.SelfTestFailed, 0x6: drivebay.SelfTestFailed, 0x7: drivebay.SelfTestFailed, 0xF: drivebay.SelfTestRunning,
	}
	scsiWords = [16]string{
		0x0: "completed without error", 0x1: "aborted by a command", 0x2: "aborted otherwise", 0x3: "unknown error, could not complete",
		0x4: "failed, segment unknown", 0x5: "failed in the first segment", 0x6: "failed in the second segment", 0x7: "failed in another segment",
		0xF: "in progress",
	}
)

// SCSILogSelfTest decodes page 10h (SPC-5, 7.3.18): 20 results, newest first.
func SCSILogSelfTest(ev *drivebay.Evidence, b []byte) error {
	const entries, size = 20, 16
	var found []drivebay.SelfTest
	table := map[uint16]field{}
	for code := uint16(1); code <= entries; code++ {
		table[code] = field{size, func(p parameter) {
			if uniform(p.data[:size], 0) { // never used
				return
			}
			result := p.data[0] & 0xF
			t := drivebay.SelfTest{Kind: kind(scsiKinds, p.data[0]>>5), Result: scsiResults[result], Text: scsiWords[result], Hours: uint64(be.Uint16(p.data[2:]))}
			if t.Text == "" {
				t.Text = fmt.Sprintf("result %Xh", result)
			}
			failed := t.Result == drivebay.SelfTestFailed || t.Result == drivebay.SelfTestFatal
			if lba := be.Uint64(p.data[4:]); failed && lba != math.MaxUint64 {
				t.LBA = &lba
			}
			found = append(found, t)
		}}
	}
	if err := (logPage{"scsi-log-10", 0x10, 0}).log(ev, b, table); err != nil {
		return err
	}
	ev.SelfTests = found
	return nil
}

// SCSILogSSD decodes page 11h: the percentage of the endurance used (SBC-4, 6.4.11).
func SCSILogSSD(ev *drivebay.Evidence, b []byte) error {
	var used int
	err := logPage{"scsi-log-11", 0x11, 0}.log(ev, b, map[uint16]field{1: {4, func(p parameter) { used = int(p.data[3]) }}})
	if err == nil {
		ev.PercentUsed = &used
	}
	return err
}

// SCSILogBackground decodes the status of page 15h (SBC-4, 6.4.2): minutes powered on and the
// state of the background scan.
func SCSILogBackground(ev *drivebay.Evidence, b []byte) error {
	var hours uint64
	var status uint8
	err := logPage{"scsi-log-15", 0x15, 0}.log(ev, b, map[uint16]field{0: {6, func(p parameter) {
		hours, status = uint64(be.Uint32(p.data))/60, p.data[5]
	}}})
	if err == nil {
		ev.PowerOnHours, scsi(ev).BackgroundScan = &hours, &status
	}
	return err
}

// SCSIPending decodes page 15h subpage 01h: the number of pending defects.
func SCSIPending(ev *drivebay.Evidence, b []byte) error {
	var n uint64
	err := logPage{"scsi-log-15-01", 0x15, 0x01}.log(ev, b, map[uint16]field{0: {4, func(p parameter) { n = uint64(be.Uint32(p.data)) }}})
	if err == nil {
		scsi(ev).PendingDefects = &n
	}
	return err
}

// SCSILogIE decodes informational exceptions, page 2Fh (SPC-5, 7.3.12). Code 0 means that the
// drive has nothing to report, 5Dh that it predicts its failure (5Dh/FFh was requested as a test;
// smartctl reports that as a failure too). Any other code gives no verdict, but the rules judge
// it: 0Bh is a warning, about the temperature (01h), the background scan (04h and on), or a power
// supply outside the drive.
func SCSILogIE(ev *drivebay.Evidence, b []byte) error {
	var asc, ascq uint8
	heat := byte(notKnown)
	err := logPage{"scsi-log-2f", 0x2F, 0}.log(ev, b, map[uint16]field{0: {2, func(p parameter) {
		asc, ascq = p.data[0], p.data[1]
		if len(p.data) > 2 {
			heat = p.data[2]
		}
	}}})
	if err != nil {
		return err
	}
	s := scsi(ev)
	s.HasIE, s.ASC, s.ASCQ = true, asc, ascq
	ev.Verdict = map[uint8]drivebay.Verdict{0x00: drivebay.VerdictPassed, 0x5D: drivebay.VerdictFailed}[asc]
	if heat != notKnown && heat != 0 {
		first(&ev.Temperature, int(heat))
	}
	return nil
}
