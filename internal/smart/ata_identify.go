package smart

import (
	"fmt"

	"github.com/drivebay/drivebay"
)

const pageIdentify = "ata-identify"

// compactFlash is word 0 of a CF card; it has the bit set that otherwise means "not a disk".
const compactFlash = 0x848A

// ATAIdentify decodes IDENTIFY DEVICE (ACS-4, 7.13).
func ATAIdentify(ev *drivebay.Evidence, b []byte) error {
	id, err := readIdentify(b)
	if err != nil {
		return err
	}
	into := &ev.Identity
	take(&into.Serial, text(swapped(b[20:40])))
	take(&into.Firmware, text(swapped(b[46:54])))
	take(&into.Model, text(swapped(b[54:94])))
	take(&into.WWN, id.wwn())
	if size := id.size(); size > 0 {
		into.Size = size
	}
	if t, rpm := id.medium(); t != drivebay.TypeUnknown {
		ev.Type, into.RPM = t, rpm
	}
	ev.Protocol = drivebay.ProtocolATA
	a := ata(ev)
	a.LogicalSector = id.logicalSector()
	a.SMARTSupported = id.told(83) && id[82]&1 != 0
	a.SMARTEnabled = a.SMARTSupported && id.told(87) && id[85]&1 != 0
	return nil
}

// ata returns the ATA part of the evidence and creates it if needed.
func ata(ev *drivebay.Evidence) *drivebay.ATA {
	if ev.ATA == nil {
		ev.ATA = &drivebay.ATA{}
	}
	return ev.ATA
}

// sectorOf returns the size of a logical sector: that of the identify data, else 512.
func sectorOf(a *drivebay.ATA) uint64 {
	if a.LogicalSector > 0 {
		return a.LogicalSector
	}
	return sector
}

// words holds the 256 words of IDENTIFY DEVICE data.
type words [256]uint16

func readIdentify(b []byte) (*words, error) {
	if err := atLeast(pageIdentify, b, sector); err != nil {
		return nil, err
	}
	if b = b[:sector]; uniform(b, 0) || uniform(b, 0xFF) {
		return nil, ignored(pageIdentify, "all bytes are %02Xh", b[0])
	}
	var id words
	for i := range id {
		id[i] = le.Uint16(b[2*i:])
	}
	switch {
	case id[255]&0xFF == 0xA5 && checksum(b) != 0: // word 255: the checksum is valid where the signature is A5h
		return nil, ignored(pageIdentify, "the checksum is wrong")
	case id[0]&0x8000 != 0 && id[0] != compactFlash:
		return nil, ignored(pageIdentify, "word 0 is %04Xh, which is not a disk", id[0])
	case text(b[54:94]) == "":
		return nil, ignored(pageIdentify, "the model name is empty")
	}
	return &id, nil
}

// told reports whether a word has the mark (bits 15:14 = 01b) that it and its group are valid: 83
// for 82..83, 84 for itself, 87 for 85..87, 106.
func (id *words) told(word int) bool { return id[word]>>14 == 1 }

// wwn returns the world wide name of words 108..111 in the format of the kernel.
func (id *words) wwn() string {
	n := uint64(id[108])<<48 | uint64(id[109])<<32 | uint64(id[110])<<16 | uint64(id[111])
	supported := id.told(87) && id[87]&(1<<8) != 0 || id.told(84) && id[84]&(1<<8) != 0
	if !supported || n>>60 != 5 { // the field's NAA shall be 5h
		return ""
	}
	return fmt.Sprintf("naa.%016x", n)
}

// size returns the capacity in bytes: words 100..103 where 48-bit addresses are supported, else
// 60..61, in logical sectors of words 117..118 (two-byte words) or 512 bytes.
func (id *words) size() uint64 {
	sectors := uint64(id[61])<<16 | uint64(id[60])
	if id.told(83) && id[83]&(1<<10) != 0 {
		if n := uint64(id[103])<<48 | uint64(id[102])<<32 | uint64(id[101])<<16 | uint64(id[100]); n > 0 {
			sectors = n
		}
	}
	return times(sectors, id.logicalSector())
}

func (id *words) logicalSector() uint64 {
	if id.told(106) && id[106]&(1<<12) != 0 {
		if n := uint64(id[118])<<16 | uint64(id[117]); n > 0 {
			return times(n, 2)
		}
	}
	return sector
}

// medium decodes word 217: 0001h is solid state, 0401h..FFFEh are revolutions per minute. Drives
// older than the word have 0; of those, only flash supports TRIM (word 169 bit 0).
func (id *words) medium() (drivebay.Type, int) {
	switch rate := id[217]; {
	case rate == 1:
		return drivebay.TypeSSD, 0
	case rate >= 0x0401 && rate <= 0xFFFE:
		return drivebay.TypeHDD, int(rate)
	case rate == 0 && id[169]&1 != 0:
		return drivebay.TypeSSD, 0
	}
	return drivebay.TypeUnknown, 0
}

// Asleep reports whether the answer to CHECK POWER MODE (the COUNT field; ACS-4, 7.3) means that
// another command would spin the drive up: 00h and 01h are standby, 40h is the NV cache active
// with the spindle down. 41h is the same with the spindle up, 80h..83h are idle, FFh is active:
// the drive spins.
func Asleep(powerMode byte) bool {
	switch powerMode {
	case 0x00, 0x01, 0x40:
		return true
	}
	return false
}
