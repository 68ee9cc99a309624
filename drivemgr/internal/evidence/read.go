package evidence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/smart"
)

// pageRequest is one page that a reading reads, its decoder, and the condition under which
// the drive has the page. Every drive of the family has to answer the pages marked
// must.
type pageRequest struct {
	page   host.Page
	decode func(*drivebay.Evidence, []byte) error // nil: only lists what is supported
	must   bool
	when   func(answers) bool // nil: always
}

// answers holds the pages that a reading has read so far.
type answers map[host.Page][]byte

// pageRequests holds the pages that a reading reads, in order, by protocol. The command that
// checks for standby is not in it: reading sends that one first.
var pageRequests = map[drivebay.Protocol][]pageRequest{
	drivebay.ProtocolATA: {
		{host.ATAIdentify, smart.ATAIdentify, true, nil},
		{host.ATASmartData, smart.ATASmartData, true, hasSMART},
		{host.ATASmartThresholds, smart.ATASmartThresholds, false, hasSMART},
		{host.ATASmartStatus, smart.ATASmartStatus, true, hasSMART},
		{host.ATASummaryErrorLog, smart.ATASummaryErrorLog, false, hasErrorLog},
		{host.ATASelfTestLog, smart.ATASelfTestLog, false, hasSelfTests},
		{host.ATALogDirectory, smart.ATALogDirectory, false, hasGeneralLogs},
		{host.ATADevStats, smart.ATADevStats, false, hasLog(0x04)},
		{host.ATAExtErrorLog, smart.ATAExtErrorLog, false, hasLog(0x03)},
		{host.ATAExtSelfTestLog, smart.ATAExtSelfTestLog, false, hasLog(0x07)},
		{host.ATASelectiveLog, smart.ATASelectiveLog, false, needsSelectiveLog},
	},
	drivebay.ProtocolNVMe: {
		{host.NVMeSmartLog, smart.NVMeSmartLog, true, nil}, // first: the limits in identify apply to it
		{host.NVMeIdentifyController, smart.NVMeIdentifyController, true, nil},
		{host.NVMeIdentifyNamespace, smart.NVMeIdentifyNamespace, false, nil},
		{host.NVMeErrorLog, smart.NVMeErrorLog, false, nil},
		{host.NVMeSelfTestLog, smart.NVMeSelfTestLog, false, func(a answers) bool { return smart.NVMeHasSelfTests(a[host.NVMeIdentifyController]) }},
	},
	drivebay.ProtocolSCSI: {
		{host.SCSIInquiry, smart.SCSIInquiry, true, nil},
		{host.SCSIVPDSupported, nil, false, nil},
		{host.SCSIVPDSerial, smart.SCSIVPDSerial, false, hasVPD(0x80)},
		{host.SCSIVPDDeviceID, smart.SCSIVPDDeviceID, false, hasVPD(0x83)},
		{host.SCSIVPDBlockChar, smart.SCSIVPDBlockChar, false, hasVPD(0xb1)},
		{host.SCSICapacity, smart.SCSICapacity, false, nil},
		{host.SCSILogSupported, smart.SCSILogPages, false, nil},
		{host.SCSILogIE, smart.SCSILogIE, false, hasSCSILog(0x2f)},
		{host.SCSILogRead, smart.SCSILogRead, false, hasSCSILog(0x03)},
		{host.SCSILogWrite, smart.SCSILogWrite, false, hasSCSILog(0x02)},
		{host.SCSILogVerify, smart.SCSILogVerify, false, hasSCSILog(0x05)},
		{host.SCSILogNonMedium, smart.SCSILogNonMedium, false, hasSCSILog(0x06)},
		{host.SCSILogTemp, smart.SCSILogTemp, false, hasSCSILog(0x0d)},
		{host.SCSILogStartStop, smart.SCSILogStartStop, false, hasSCSILog(0x0e)},
		{host.SCSILogSelfTest, smart.SCSILogSelfTest, false, hasSCSILog(0x10)},
		{host.SCSILogSSD, smart.SCSILogSSD, false, hasSCSILog(0x11)},
		{host.SCSILogBackground, smart.SCSILogBackground, false, hasSCSILog(0x15)},
		{host.SCSIPending, smart.SCSIPending, false, hasSCSILog(0x15)},
		// A drive with log pages has a defect list. A drive without them is a bridge or an
		// emulation, which does not know the command.
		{host.SCSIGrownDefects, smart.SCSIGrownDefects, false, hasSCSILog(0x03)},
	},
}

func hasSMART(a answers) bool { return smart.ATAHasSMART(a[host.ATAIdentify]) }

func hasErrorLog(a answers) bool {
	return hasSMART(a) && smart.ATAHasErrorLog(a[host.ATAIdentify], a[host.ATASmartData])
}

func hasSelfTests(a answers) bool {
	return hasSMART(a) && smart.ATAHasSelfTests(a[host.ATAIdentify], a[host.ATASmartData])
}

func needsSelectiveLog(a answers) bool {
	return smart.ATANeedsSelectiveLog(a[host.ATASmartData], a[host.ATASelfTestLog], a[host.ATAExtSelfTestLog])
}

func hasGeneralLogs(a answers) bool { return smart.ATAHasGeneralLogs(a[host.ATAIdentify]) }

func hasLog(log byte) func(answers) bool {
	return func(a answers) bool { return smart.ATAHasLog(a[host.ATALogDirectory], log) }
}

func hasVPD(page byte) func(answers) bool {
	return func(a answers) bool { return smart.SCSIHasPage(a[host.SCSIVPDSupported], page) }
}

func hasSCSILog(page byte) func(answers) bool {
	return func(a answers) bool { return smart.SCSIHasLog(a[host.SCSILogSupported], page) }
}

// Result is what was read from a drive at one time.
type Result struct {
	Evidence *drivebay.Evidence
	Content  *drivebay.Content // nil: this reading did not read it
	Proved   *kernellog.Proved // nil: the reading had nothing to prove, or could not read
	// Commands that the kernel counts as errors, and as timeouts, although only our
	// question caused them.
	Refused, Aborted uint64
	Err              error // why the drive could not be read at all
}

// Read opens a drive and reads all its pages. It may block for as long as the kernel
// does: call it in the drive's lane.
func Read(ctx context.Context, m host.Machine, d *drivebay.Drive, readContent bool, p *kernellog.Proof) (out Result, err error) {
	ev := &drivebay.Evidence{At: m.Now(), Source: "drive", Protocol: d.Protocol, Type: d.Type}
	h, err := m.OpenDrive(ctx, DevOf(d))
	if err != nil {
		return Result{}, err
	}
	defer h.Close()

	out.Evidence = ev
	counted := &countingDrive{OpenDrive: h}
	defer func() { out.Refused, out.Aborted = counted.refused, counted.aborted }()
	if ev.Standby = inStandby(ctx, counted, d.Protocol); ev.Standby {
		return out, nil
	}
	err = readPages(ctx, counted, pageRequests[d.Protocol], ev)
	if errors.Is(err, host.ErrGone) && canRead(h, d) {
		err = errNoPages
	}
	if readContent && !ev.Standby && err == nil {
		c := content.DetectDrive(h, d.Size, d.LogicalBlock)
		out.Content = &c
	}
	if p != nil && !ev.Standby && err == nil {
		got := p.Read(ctx, h, d)
		out.Proved = &got
	}
	return out, err
}

// errNoPages is the error of a drive whose adapter fails requests for pages as if the drive were
// absent.
var errNoPages = errors.New("the drive can be read, but the adapter fails every request for a health page")

// canRead reports whether the first block of a drive can be read.
func canRead(h host.OpenDrive, d *drivebay.Drive) bool {
	b := make([]byte, max(d.LogicalBlock, 512))
	n, err := h.ReadMedium(b, 0)
	return err == nil && n == len(b)
}

// countingDrive counts the commands that raise the kernel's ioerr_cnt although nothing
// is wrong: the SCSI layer counts each command that ends in CHECK CONDITION
// (scsi_lib.c, scsi_complete). A refused page ends so, and so do the two ATA commands
// that answer with registers, which come back as sense data. An ATA command that the
// drive aborts also raises iotmo_cnt: libata's error handler ends it like one that
// timed out (seen on Linux 6.1).
type countingDrive struct {
	host.OpenDrive
	refused, aborted uint64
}

func (c *countingDrive) Page(ctx context.Context, p host.Page) ([]byte, error) {
	b, err := c.OpenDrive.Page(ctx, p)
	if err != nil || p == host.ATAPowerMode || p == host.ATASmartStatus {
		c.refused++
	}
	if err != nil && strings.HasPrefix(string(p), string(host.FamilyATA)) {
		c.aborted++
	}
	return b, err
}

// readPages reads the pages one after another. It returns an error when the drive stops
// answering; any lesser failure becomes a Problem.
func readPages(ctx context.Context, h host.OpenDrive, pageRequests []pageRequest, ev *drivebay.Evidence) error {
	got := answers{}
	for _, q := range pageRequests {
		if q.when != nil && !q.when(got) {
			continue
		}
		page, err := h.Page(ctx, q.page)
		switch {
		case err == nil:
			got[q.page] = page
			if q.decode != nil {
				err = q.decode(ev, page)
			}
		case errors.Is(err, host.ErrStandby):
			ev.Standby = true
			return nil
		case errors.Is(err, host.ErrGone), errors.Is(err, host.ErrTimeout), errors.Is(err, host.ErrPermission):
			return fmt.Errorf("%s: %w", q.page, err)
		}
		if err != nil {
			ev.Problems = append(ev.Problems, drivebay.Problem{
				Page: string(q.page), Text: err.Error(),
				Expected: !q.must && errors.Is(err, host.ErrUnsupported),
			})
		}
	}
	return nil
}

// inStandby reports whether a drive is in standby, by the one command that does not wake
// it: ATA CHECK POWER MODE (ACS-4 7.4), SCSI TEST UNIT READY (SPC-5 6.47: a stopped
// unit answers NOT READY and stays stopped). NVMe has no spindle.
func inStandby(ctx context.Context, h host.OpenDrive, p drivebay.Protocol) bool {
	switch p {
	case drivebay.ProtocolATA:
		mode, err := h.Page(ctx, host.ATAPowerMode)
		return err == nil && len(mode) > 0 && smart.Asleep(mode[0])
	case drivebay.ProtocolSCSI:
		_, err := h.Page(ctx, host.SCSITestUnitReady)
		return errors.Is(err, host.ErrStandby)
	}
	return false
}

// RawPages reads every page of a drive's protocol and returns the answers undecoded.
func RawPages(ctx context.Context, m host.Machine, d *drivebay.Drive) ([]drivebay.RawPage, error) {
	h, err := m.OpenDrive(ctx, DevOf(d))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if inStandby(ctx, h, d.Protocol) {
		return nil, fmt.Errorf("drive %s: %w: drivebay does not wake the drive", d.ID, host.ErrStandby)
	}
	var pages []drivebay.RawPage
	got := answers{}
	for _, q := range pageRequests[d.Protocol] {
		if q.when != nil && !q.when(got) {
			continue
		}
		raw := drivebay.RawPage{Page: string(q.page)}
		if raw.Data, err = h.Page(ctx, q.page); err != nil {
			raw.Error = err.Error()
		}
		got[q.page] = raw.Data
		pages = append(pages, raw)
	}
	return pages, nil
}

// DevOf returns the device node to open: the first path that works, else the node of
// the drive's name (an NVMe head, whose own paths are hidden).
func DevOf(d *drivebay.Drive) string {
	for _, p := range d.Paths {
		if p.Dev != "" && (p.State == "" || p.State == "running" || p.State == "live") {
			return p.Dev
		}
	}
	return "/dev/" + d.Name
}
