package content

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"
)

// LUKSHeader is a LUKS2 header: the fields that other programs read, and a private note in place of
// the key areas (LUKS2 On-Disk Format, 2.2 and 3).
type LUKSHeader struct {
	UUID, Label, Subsystem string
	LUKSKeys
}

type LUKSKeys struct {
	Offset uint64     // of the data, bytes
	Slots  []LUKSSlot // empty: erased
}

// LUKSSlot holds the key of the data, wrapped with the passphrase.
type LUKSSlot struct{ Salt, Check, Wrapped []byte }

// MaxSlots is how many key slots fit into the 1 MiB of the header: one takes 252 KiB.
const MaxSlots = 4

const (
	luksMagic  = "LUKS\xba\xbe\x00\x02"
	luksSlotAt = 32 << 10
	luksBinary = 4096
)

// stretched derives a key from a passphrase for a purpose.
func (s *LUKSSlot) stretched(pass []byte, purpose string) [32]byte {
	return sha256.Sum256([]byte(purpose + "\x00" + string(s.Salt) + string(pass)))
}

// NewSlot wraps a key with a passphrase.
func NewSlot(pass []byte, key [32]byte) LUKSSlot {
	s := LUKSSlot{Salt: []byte(rand.Text()), Wrapped: make([]byte, 32)}
	check, wrap := s.stretched(pass, "check"), s.stretched(pass, "wrap")
	s.Check = check[:]
	for i := range key {
		s.Wrapped[i] = key[i] ^ wrap[i]
	}
	return s
}

func NewKey() (key [32]byte) {
	_, _ = rand.Read(key[:]) // it never fails
	return key
}

// Opens returns the slot that a passphrase opens; -1: none.
func (k *LUKSKeys) Opens(pass []byte) int {
	return slices.IndexFunc(k.Slots, func(s LUKSSlot) bool { return s.stretched(pass, "check") == [32]byte(s.Check) })
}

// Key returns the key of the data.
func (k *LUKSKeys) Key(pass []byte) (key [32]byte, ok bool) {
	i := k.Opens(pass)
	if i < 0 {
		return key, false
	}
	key = k.Slots[i].stretched(pass, "wrap")
	for n := range key {
		key[n] ^= k.Slots[i].Wrapped[n]
	}
	return key, true
}

// Store writes the header.
func (h *LUKSHeader) Store(write func([]byte, uint64) error) error {
	b := make([]byte, luksBinary)
	copy(b, luksMagic)
	be.PutUint64(b[8:], 16<<10)
	copy(b[24:72], h.Label)
	copy(b[168:208], h.UUID)
	copy(b[208:256], h.Subsystem)
	if err := write(b, 0); err != nil {
		return err
	}
	text, err := json.Marshal(h.LUKSKeys)
	if err != nil {
		return err
	}
	return write(append(be.AppendUint32(nil, uint32(len(text))), text...), luksSlotAt)
}

// ReadLUKS returns the header that the bytes hold.
func ReadLUKS(read func([]byte, uint64)) (h LUKSHeader, ok bool) {
	b := make([]byte, luksBinary)
	if read(b, 0); string(b[:8]) != luksMagic {
		return h, false
	}
	h = LUKSHeader{UUID: cString(b[168:208]), Label: cString(b[24:72]), Subsystem: cString(b[208:256])}
	read(b, luksSlotAt)
	if n := be.Uint32(b); n > 0 && n < luksBinary-4 {
		_ = json.Unmarshal(b[4:4+n], &h.LUKSKeys) // damaged slots open nothing
	}
	return h, true
}
