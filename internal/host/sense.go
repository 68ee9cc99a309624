package host

import "fmt"

// sense holds what a SCSI device reports about a command that did not simply succeed (SPC-5 4.4).
type sense struct {
	key, asc, ascq byte
	ata            *registers // of an ATA drive behind a translation layer; nil if not returned
}

// Sense keys (SPC-5 table 48) that the code tells apart.
const (
	keyNone           = 0x0
	keyRecovered      = 0x1
	keyNotReady       = 0x2
	keyIllegalRequest = 0x5
	keyUnitAttention  = 0x6
	keyAborted        = 0xb
)

// parseSense parses the fixed (70h, 71h) and descriptor (72h, 73h) formats.
func parseSense(b []byte) (sense, bool) {
	if len(b) < 8 {
		return sense{}, false
	}
	switch b[0] & 0x7f {
	case 0x70, 0x71:
		s := sense{key: b[2] & 0x0f}
		if len(b) >= 14 {
			s.asc, s.ascq = b[12], b[13]
		}
		if len(b) >= 14 {
			s.ata = fixedRegisters(b, s)
		}
		return s, true
	case 0x72, 0x73:
		s := sense{key: b[1] & 0x0f, asc: b[2], ascq: b[3]}
		end := min(len(b), 8+int(b[7]))
		for at := 8; at+2 <= end; {
			size := 2 + int(b[at+1])
			if b[at] == 0x09 && size >= 14 && at+size <= end {
				d := b[at:] // ATA status return descriptor (SAT-4 12.2.2.7)
				s.ata = &registers{error: d[3], count: d[5], lbaLow: d[7], lbaMid: d[9], lbaHigh: d[11], status: d[13]}
			}
			at += size
		}
		return s, true
	}
	return sense{}, false
}

// fixedRegisters returns the registers in fixed format. They are in the information fields (SAT-4
// table 181) when the sense says so or reports an aborted command. libata for years (observed on Linux
// 6.1) wrote those of a failed command five bytes further on.
func fixedRegisters(b []byte, s sense) *registers {
	const failed = 0x21 // ERR, or device fault
	here := &registers{error: b[3], status: b[4], count: b[6], lbaLow: b[9], lbaMid: b[10], lbaHigh: b[11]}
	switch {
	case s.asc == 0x00 && s.ascq == 0x1d:
		return here
	case s.key != keyAborted || s.asc != 0 || s.ascq != 0:
		return nil
	case b[4]&failed != 0:
		return here
	case b[3]|b[4]|b[5]|b[6] == 0 && b[9]&failed != 0:
		return &registers{error: b[8], status: b[9], count: b[11]}
	}
	return nil
}

// err returns the error that a sense means, nil when the command succeeded.
func (s sense) err() error {
	text := fmt.Sprintf("sense key %xh, additional sense %02x/%02xh", s.key, s.asc, s.ascq)
	switch s.key {
	case keyNone, keyRecovered:
		return nil
	case keyIllegalRequest:
		return fmt.Errorf("%w: %s", ErrUnsupported, text)
	case keyNotReady:
		// 04/02 and 04/11: stopped, waits for START UNIT or NOTIFY; 5E: low power (SPC-5 annex F).
		if s.asc == 0x5e || (s.asc == 0x04 && (s.ascq == 0x02 || s.ascq == 0x11)) {
			return fmt.Errorf("%w: %s", ErrStandby, text)
		}
		if s.asc == 0x3a {
			return fmt.Errorf("%w: no medium: %s", ErrGone, text)
		}
	}
	return fmt.Errorf("the drive rejected the command: %s", text)
}
