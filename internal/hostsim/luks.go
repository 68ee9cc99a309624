package hostsim

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
)

// luksHeader is a LUKS2 header: what is read of it by others, and our own note
// where the real one has its areas of keys (LUKS2 On-Disk Format, 2.2 and 3).
type luksHeader struct {
	uuid, label, subsystem string
	slot                   *luksSlot // nil: erased
}

// luksSlot has a key that only who knows the passphrase can take out.
type luksSlot struct {
	Salt, Check, Wrapped []byte
	Offset               uint64 // of the data, bytes
}

const (
	luksMagic  = "LUKS\xba\xbe\x00\x02"
	luksSlotAt = 32 << 10
	luksBinary = 4096
)

// stretched is what is made of a passphrase, for a purpose.
func (s *luksSlot) stretched(pass []byte, purpose string) [32]byte {
	return sha256.Sum256([]byte(purpose + "\x00" + string(s.Salt) + string(pass)))
}

func newSlot(pass []byte, offset uint64) *luksSlot {
	s := &luksSlot{Salt: []byte(rand.Text()), Wrapped: make([]byte, 32), Offset: offset}
	check := s.stretched(pass, "check")
	s.Check = check[:]
	_, _ = rand.Read(s.Wrapped) // the key, whatever it comes to
	return s
}

// key takes the key out.
func (s *luksSlot) key(pass []byte) (key [32]byte, ok bool) {
	if s == nil || s.stretched(pass, "check") != [32]byte(s.Check) {
		return key, false
	}
	key = s.stretched(pass, "wrap")
	for i := range key {
		key[i] ^= s.Wrapped[i]
	}
	return key, true
}

func (h *luksHeader) store(dev *device) error {
	b := make([]byte, luksBinary)
	copy(b, luksMagic)
	be.PutUint64(b[8:], 16<<10)
	copy(b[24:72], h.label)
	copy(b[168:208], h.uuid)
	copy(b[208:256], h.subsystem)
	if err := dev.write(b, 0); err != nil {
		return err
	}
	text, err := json.Marshal(h.slot)
	if err != nil {
		return err
	}
	return dev.write(append(be.AppendUint32(nil, uint32(len(text))), text...), luksSlotAt)
}

func readLUKS(dev *device) (h luksHeader, ok bool) {
	b := make([]byte, luksBinary)
	if dev.read(b, 0); string(b[:8]) != luksMagic {
		return h, false
	}
	h = luksHeader{uuid: cString(b[168:208]), label: cString(b[24:72]), subsystem: cString(b[208:256])}
	dev.read(b, luksSlotAt)
	if n := be.Uint32(b); n > 0 && n < luksBinary-4 {
		_ = json.Unmarshal(b[4:4+n], &h.slot) // what cannot be read opens nothing
	}
	return h, true
}
