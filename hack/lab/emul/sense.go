package emul

import "encoding/binary"

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

// Reply is the answer to one command.
type Reply struct {
	Status byte   // SCSI status
	Data   []byte // for the initiator; also beside an error, as far as the command came
	Sense  []byte
}

// SCSI status codes (SAM-5 table 40).
const (
	StatusGood           = 0x00
	StatusCheckCondition = 0x02
	StatusTaskAborted    = 0x40
)

// Sense keys (SPC-5 table 48).
const (
	keyRecovered      = 0x1
	keyNotReady       = 0x2
	keyMedium         = 0x3
	keyIllegalRequest = 0x5
	keyAborted        = 0xb
)

// condition is what a device has to say about a command.
type condition struct {
	key, asc, ascq byte
	lba            *uint64    // of the block that the command failed on
	ata            *registers // of a command that was passed through
}

// Conditions of many commands (SPC-5 annex F).
var (
	badOpcode     = condition{key: keyIllegalRequest, asc: 0x20}
	badField      = condition{key: keyIllegalRequest, asc: 0x24}
	badParameter  = condition{key: keyIllegalRequest, asc: 0x26}
	outOfRange    = condition{key: keyIllegalRequest, asc: 0x21}
	stopped       = condition{key: keyNotReady, asc: 0x04, ascq: 0x02}
	notResponding = condition{key: keyNotReady, asc: 0x05} // logical unit does not respond to selection
)

func good(data []byte) Reply { return Reply{Data: data} }

func (c condition) reply(descriptors bool) Reply {
	if descriptors {
		return Reply{Status: StatusCheckCondition, Sense: c.descriptors()}
	}
	return Reply{Status: StatusCheckCondition, Sense: c.fixed()}
}

// fixed format (SPC-5 4.4.3). Of an address it holds 32 bits; registers stand where
// SAT-4 12.2.2.7 puts them.
func (c condition) fixed() []byte {
	b := make([]byte, 18)
	b[0], b[2], b[7], b[12], b[13] = 0x70, c.key, 10, c.asc, c.ascq
	if c.lba != nil && *c.lba <= 0xffffffff {
		b[0] |= 0x80 // the information field is valid
		be.PutUint32(b[3:], uint32(*c.lba))
	}
	if r := c.ata; r != nil {
		b[3], b[4], b[5], b[6] = r.error, r.status, r.device, byte(r.count)
		if r.extended {
			b[8] |= 0x80
		}
		if r.count>>8 != 0 {
			b[8] |= 0x40
		}
		if r.lba>>24 != 0 {
			b[8] |= 0x20
		}
		b[9], b[10], b[11] = byte(r.lba), byte(r.lba>>8), byte(r.lba>>16)
	}
	return b
}

// descriptors is the descriptor format (SPC-5 4.4.2).
func (c condition) descriptors() []byte {
	b := []byte{0x72, c.key, c.asc, c.ascq, 0, 0, 0, 0}
	if c.lba != nil {
		b = append(b, 0x00, 0x0a, 0x80, 0)
		b = be.AppendUint64(b, *c.lba)
	}
	if r := c.ata; r != nil { // ATA Status Return, SAT-4 12.2.2.6
		var extended byte
		if r.extended {
			extended = 1
		}
		b = append(b, 0x09, 0x0c, extended, r.error, byte(r.count>>8), byte(r.count),
			byte(r.lba>>24), byte(r.lba), byte(r.lba>>32), byte(r.lba>>8), byte(r.lba>>40), byte(r.lba>>16), r.device, r.status)
	}
	b[7] = byte(len(b) - 8)
	return b
}
