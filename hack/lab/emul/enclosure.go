package emul

import "sync"

// Shelf is a SES enclosure (SES-3) of array device slots.
type Shelf struct {
	mu    sync.Mutex
	desc  Enclosure
	slots []slotState
}

// slotState is what can change about a slot.
type slotState struct {
	locate, fault bool // the lights, as they were requested
	off           bool // the device is switched off
	active        bool // do not disturb
}

// NewShelf makes an enclosure of its description.
func NewShelf(e Enclosure) (*Shelf, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	if e.Vendor == "" {
		e.Vendor = "DRIVEBAY"
	}
	if e.Product == "" {
		e.Product = "EMULATED SHELF"
	}
	e.Slots = append([]Slot(nil), e.Slots...)
	return &Shelf{desc: e, slots: make([]slotState, len(e.Slots))}, nil
}

// Do answers one command.
func (s *Shelf) Do(cdb, out []byte) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := make([]byte, max(16, len(cdb)))
	copy(full, cdb)
	switch full[0] {
	case 0x00: // TEST UNIT READY
		return good(nil)
	case 0x03: // REQUEST SENSE
		return good(limited(condition{}.fixed(), int(full[4])))
	case 0x12:
		return s.inquiry(full)
	case 0x1c:
		return s.receiveDiagnostic(full)
	case 0x1d:
		return s.sendDiagnostic(full, out)
	}
	return badOpcode.reply(false)
}

func (s *Shelf) inquiry(cdb []byte) Reply {
	standard := standardInquiry(typeEnclosure, s.desc.Vendor, s.desc.Product, "1")
	// EncServ: without it Linux attaches its driver and makes no enclosure
	// (drivers/scsi/ses.c, scsi_device_enclosure).
	standard[6] = 1 << 6
	b, ok := inquire(cdb, standard, func(page byte) []byte {
		switch page {
		case 0x00:
			return vitalPage(typeEnclosure, page, []byte{0x00, 0x80, 0x83})
		case 0x80:
			return vitalPage(typeEnclosure, page, []byte(s.desc.Name))
		case 0x83:
			return vitalPage(typeEnclosure, page, naa(s.desc.LogicalID))
		}
		return nil
	})
	if !ok {
		return badField.reply(false)
	}
	return good(b)
}

// Diagnostic pages (SES-3 clause 6).
const (
	sesSupported     = 0x00
	sesConfiguration = 0x01
	sesStatus        = 0x02 // and control, in the other direction
	sesDescriptors   = 0x07
	sesAdditional    = 0x0a
	arrayDeviceSlot  = 0x17
)

// generation counts configurations; ours never changes.
const generation = 1

// sesPage puts the header before a page; all but the list of pages have the
// generation code in it.
func sesPage(code byte, body []byte) []byte {
	if code != sesSupported {
		body = append(be.AppendUint32(nil, generation), body...)
	}
	return append([]byte{code, 0, byte(len(body) >> 8), byte(len(body))}, body...)
}

func (s *Shelf) receiveDiagnostic(cdb []byte) Reply {
	if cdb[1]&1 == 0 { // which page is not said
		return badField.reply(false)
	}
	var body []byte
	switch cdb[2] {
	case sesSupported:
		body = []byte{sesSupported, sesConfiguration, sesStatus, sesDescriptors, sesAdditional}
	case sesConfiguration:
		body = s.configuration()
	case sesStatus:
		body = s.status()
	case sesDescriptors:
		body = s.descriptors()
	case sesAdditional:
		body = s.additional()
	default:
		return badField.reply(false)
	}
	return good(limited(sesPage(cdb[2], body), int(be.Uint16(cdb[3:]))))
}

// configuration is one enclosure with one type of element.
func (s *Shelf) configuration() []byte {
	const kind = "Array Device Slot"
	enclosure := []byte{0x11, 0, 1, 0} // process 1 of 1, no subenclosures, one type
	enclosure = be.AppendUint64(enclosure, s.desc.LogicalID)
	enclosure = append(enclosure, padded(s.desc.Vendor, 8)...)
	enclosure = append(enclosure, padded(s.desc.Product, 16)...)
	enclosure = append(enclosure, padded("1", 4)...)
	enclosure[3] = byte(len(enclosure) - 4)
	b := append(enclosure, arrayDeviceSlot, byte(len(s.slots)), 0, byte(len(kind)))
	return append(b, kind...)
}

// descriptors is the page with the names of the slots.
func (s *Shelf) descriptors() []byte {
	b := []byte{0, 0, 0, 0} // of the type as a whole: none
	for _, slot := range s.desc.Slots {
		b = append(b, 0, 0, byte(len(slot.Name)>>8), byte(len(slot.Name)))
		b = append(b, slot.Name...)
	}
	return b
}

// additional is the page with the SAS addresses (SES-3 6.1.13): a descriptor for
// each slot, invalid where there is no address.
func (s *Shelf) additional() []byte {
	const sas, indexed, invalid, phy = 0x06, 1 << 4, 1 << 7, 28
	var b []byte
	for i, slot := range s.desc.Slots {
		d := make([]byte, 8+phy)
		d[0], d[1], d[3] = indexed|sas, byte(len(d)-2), byte(i)
		d[4], d[7] = 1, byte(i) // one phy; the slot's number
		p := d[8:]
		p[0], p[3] = 0x10, 0x01 // end device, SATA
		be.PutUint64(p[4:], s.desc.LogicalID)
		be.PutUint64(p[12:], slot.Address)
		if slot.Address == 0 || slot.Removed {
			d[0] |= invalid
		}
		b = append(b, d...)
	}
	return b
}
