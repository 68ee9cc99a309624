package emul

// Element status codes (SES-3 table 63).
const (
	elementOK           = 1
	elementNotInstalled = 5
)

// Bits of an array device slot element (SES-3 7.3.3), alike in status and control.
const (
	slotIdent       = 1 << 1 // byte 2
	slotActive      = 1 << 7 // byte 2, control only
	slotNotRemove   = 1 << 6 // byte 2
	slotFaultSensed = 1 << 6 // byte 3, status only
	slotFaultAsked  = 1 << 5 // byte 3
	slotOff         = 1 << 4 // byte 3
	elementSelect   = 1 << 7 // byte 0, control only
	elementSwapped  = 1 << 4 // byte 0, status only
)

// status is the enclosure status page behind its generation code: the overall
// element of the type, then each slot.
func (s *Shelf) status() []byte {
	b := []byte{elementOK, 0, 0, 0}
	for i := range s.slots {
		e := s.element(i)
		b = append(b, e[:]...)
	}
	return b
}

func (s *Shelf) element(i int) (e [4]byte) {
	slot, state := s.desc.Slots[i], s.slots[i]
	switch {
	case slot.Removed:
		e[0] = elementNotInstalled | elementSwapped
	case slot.Status == 0:
		e[0] = elementOK
	default:
		e[0] = slot.Status & 0x0f
	}
	set := func(at int, bit byte, on bool) {
		if on {
			e[at] |= bit
		}
	}
	set(2, slotIdent, state.locate)
	set(2, slotNotRemove, state.active)
	set(3, slotFaultAsked, state.fault)
	set(3, slotFaultSensed, slot.Sensed)
	set(3, slotOff, state.off)
	return e
}

// sendDiagnostic takes the enclosure control page; other pages are refused.
func (s *Shelf) sendDiagnostic(cdb, out []byte) Reply {
	const header, overall, selfTest = 8, 4, 1 << 2
	if cdb[1]&selfTest != 0 || len(out) == 0 {
		return good(nil)
	}
	if len(out) < header+overall || out[0] != sesStatus || be.Uint32(out[4:]) != generation {
		return badParameter.reply(false)
	}
	elements := out[header+overall:]
	for i := range s.slots {
		if len(elements) < 4*(i+1) {
			break
		}
		if e := elements[4*i:][:4]; e[0]&elementSelect != 0 {
			s.slots[i] = slotState{
				locate: e[2]&slotIdent != 0, active: e[2]&(slotActive|slotNotRemove) != 0,
				fault: e[3]&slotFaultAsked != 0, off: e[3]&slotOff != 0,
			}
		}
	}
	return good(nil)
}
