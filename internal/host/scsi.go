package host

import (
	"encoding/binary"
	"errors"
	"time"
)

// scsiPages holds the command of each SCSI page. length is the most bytes that it requests; the page
// is what the drive sent.
var scsiPages = map[Page]struct {
	cdb    []byte
	length int
}{
	SCSIInquiry:      {inquiry(false, 0, 96), 96},
	SCSIVPDSupported: {inquiry(true, 0x00, 255), 255},
	SCSIVPDSerial:    {inquiry(true, 0x80, 255), 255},
	SCSIVPDDeviceID:  {inquiry(true, 0x83, 4096), 4096},
	SCSIVPDATA:       {inquiry(true, 0x89, 572), 572},
	SCSIVPDBlockChar: {inquiry(true, 0xb1, 64), 64},
	// READ CAPACITY (16), SBC-4 5.20: the 10-byte form ends at 2 TiB.
	SCSICapacity:      {[]byte{0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0}, 32},
	SCSILogSupported:  {logSense(0x00, 0), logLength},
	SCSILogWrite:      {logSense(0x02, 0), logLength},
	SCSILogRead:       {logSense(0x03, 0), logLength},
	SCSILogVerify:     {logSense(0x05, 0), logLength},
	SCSILogNonMedium:  {logSense(0x06, 0), logLength},
	SCSILogTemp:       {logSense(0x0d, 0), logLength},
	SCSILogStartStop:  {logSense(0x0e, 0), logLength},
	SCSILogSelfTest:   {logSense(0x10, 0), logLength},
	SCSILogSSD:        {logSense(0x11, 0), logLength},
	SCSILogBackground: {logSense(0x15, 0), logLength},
	SCSIPending:       {logSense(0x15, 1), logLength},
	SCSILogIE:         {logSense(0x2f, 0), logLength},
	// READ DEFECT DATA (12), SBC-4 5.18: grown list, short block format; the header alone holds the
	// length of the list.
	SCSIGrownDefects: {[]byte{0xb7, 0x08, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0}, 8},
}

// logLength is larger than any drive's page; the drive sends what it has.
const logLength = 16 << 10

// inquiry returns INQUIRY (SPC-5 6.7).
func inquiry(vital bool, page byte, length int) []byte {
	b := []byte{0x12, 0, page, byte(length >> 8), byte(length), 0}
	if vital {
		b[1] = 1
	}
	return b
}

// logSense returns a LOG SENSE command for cumulative values (SPC-5 6.8).
func logSense(page, sub byte) []byte {
	b := []byte{0x4d, 0, 1<<6 | page, sub, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(b[7:], logLength)
	return b
}

// ready sends TEST UNIT READY and returns the sense of the drive as the page. As for every page,
// standby and a missing drive are errors.
func (d *realDrive) ready(timeout time.Duration) ([]byte, error) {
	_, s, err := sgExec(d.fd, make([]byte, 6), 0, timeout)
	if err != nil && (s.key == keyNone || errors.Is(err, ErrStandby) || errors.Is(err, ErrGone)) {
		return nil, err
	}
	return []byte{s.key, s.asc, s.ascq}, nil
}
