package drivemgr

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/smart"
)

// question is one page of a look: what to ask and who understands the answer.
// Only pages marked must are owed by every drive of the family; for the others
// "not supported" is an answer like any other.
type question struct {
	page   host.Page
	decode func(*drivebay.Evidence, []byte) error
	must   bool
}

// looks is what a drive is asked, in order, by the language it speaks. The
// question that finds out whether the drive sleeps is not here: it comes first.
var looks = map[drivebay.Protocol][]question{
	drivebay.ProtocolATA: {
		{host.ATAIdentify, smart.ATAIdentify, true},
		{host.ATASmartData, smart.ATASmartData, true},
		{host.ATASmartThresholds, smart.ATASmartThresholds, false},
		{host.ATASmartStatus, smart.ATASmartStatus, true},
		{host.ATADevStats, smart.ATADevStats, false},
		{host.ATASummaryErrorLog, smart.ATASummaryErrorLog, false},
		{host.ATAExtErrorLog, smart.ATAExtErrorLog, false},
		{host.ATASelfTestLog, smart.ATASelfTestLog, false},
		{host.ATAExtSelfTestLog, smart.ATAExtSelfTestLog, false},
	},
	drivebay.ProtocolNVMe: {
		{host.NVMeIdentifyController, smart.NVMeIdentifyController, true},
		{host.NVMeIdentifyNamespace, smart.NVMeIdentifyNamespace, false},
		{host.NVMeSmartLog, smart.NVMeSmartLog, true},
		{host.NVMeErrorLog, smart.NVMeErrorLog, false},
		{host.NVMeSelfTestLog, smart.NVMeSelfTestLog, false},
	},
	drivebay.ProtocolSCSI: {
		{host.SCSIInquiry, smart.SCSIInquiry, true},
		{host.SCSIVPDSerial, smart.SCSIVPDSerial, false},
		{host.SCSIVPDDeviceID, smart.SCSIVPDDeviceID, false},
		{host.SCSIVPDBlockChar, smart.SCSIVPDBlockChar, false},
		{host.SCSICapacity, smart.SCSICapacity, false},
		{host.SCSILogIE, smart.SCSILogIE, false},
		{host.SCSILogRead, smart.SCSILogRead, false},
		{host.SCSILogWrite, smart.SCSILogWrite, false},
		{host.SCSILogVerify, smart.SCSILogVerify, false},
		{host.SCSILogNonMedium, smart.SCSILogNonMedium, false},
		{host.SCSILogTemp, smart.SCSILogTemp, false},
		{host.SCSILogStartStop, smart.SCSILogStartStop, false},
		{host.SCSILogSelfTest, smart.SCSILogSelfTest, false},
		{host.SCSILogSSD, smart.SCSILogSSD, false},
		{host.SCSILogBackground, smart.SCSILogBackground, false},
		{host.SCSIPending, smart.SCSIPending, false},
		{host.SCSIGrownDefects, smart.SCSIGrownDefects, false},
	},
}

// looked is what one look at a drive brought.
type looked struct {
	evidence *drivebay.Evidence
	content  *drivebay.Content // nil: not read this time
	err      error             // the drive could not be asked at all
}

// look opens a drive and asks it everything. It may block for as long as the
// kernel likes: call it in the drive's lane.
func look(ctx context.Context, m host.Machine, d *drivebay.Drive, readContent bool) (looked, error) {
	ev := &drivebay.Evidence{At: m.Now(), Source: "drive", Protocol: d.Protocol, Type: d.Type}
	h, err := m.OpenDrive(ctx, devOf(d))
	if err != nil {
		return looked{}, err
	}
	defer h.Close()

	out := looked{evidence: ev}
	if ev.Standby = asleep(ctx, h, d.Protocol); ev.Standby {
		return out, nil
	}
	err = askAll(ctx, h, looks[d.Protocol], ev)
	if readContent && !ev.Standby && err == nil {
		c := content.Detect(h, d.Size, d.LogicalBlock)
		out.content = &c
	}
	return out, err
}

// askAll asks the questions one after another. A drive that stops answering at
// all ends the look with an error; anything less becomes a Problem.
func askAll(ctx context.Context, h host.Drive, questions []question, ev *drivebay.Evidence) error {
	for _, q := range questions {
		page, err := h.Page(ctx, q.page)
		switch {
		case err == nil:
			err = q.decode(ev, page)
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

// asleep finds out whether a drive sleeps, with the one question that wakes
// nothing: ATA CHECK POWER MODE (ACS-4 7.4), SCSI TEST UNIT READY (SPC-5 6.47:
// a stopped unit answers NOT READY and stays stopped). NVMe has no spindle.
func asleep(ctx context.Context, h host.Drive, p drivebay.Protocol) bool {
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

// rawPages asks for every page of a drive's language and returns the answers as
// they came.
func rawPages(ctx context.Context, m host.Machine, d *drivebay.Drive) ([]drivebay.RawPage, error) {
	h, err := m.OpenDrive(ctx, devOf(d))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if asleep(ctx, h, d.Protocol) {
		return nil, fmt.Errorf("drive %s: %w: it is left asleep", d.ID, host.ErrStandby)
	}
	var pages []drivebay.RawPage
	for _, q := range looks[d.Protocol] {
		raw := drivebay.RawPage{Page: string(q.page)}
		if raw.Data, err = h.Page(ctx, q.page); err != nil {
			raw.Error = err.Error()
		}
		pages = append(pages, raw)
	}
	return pages, nil
}

// devOf is the device to open: the first way to the drive that works, else the
// drive by its name (an NVMe head, whose own ways are hidden).
func devOf(d *drivebay.Drive) string {
	for _, p := range d.Paths {
		if p.Dev != "" && (p.State == "" || p.State == "running" || p.State == "live") {
			return p.Dev
		}
	}
	return "/dev/" + d.Name
}
