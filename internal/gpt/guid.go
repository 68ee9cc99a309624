package gpt

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// guid is a GUID as stored on the medium: its first three numbers with the low byte first (UEFI 2.10,
// appendix A).
type guid [16]byte

// NewGUID returns a random GUID (RFC 9562, version 4).
func NewGUID() string {
	var g guid
	rand.Read(g[:]) // it never fails
	g[7] = g[7]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return g.String()
}

func (g guid) String() string {
	le, be := binary.LittleEndian, binary.BigEndian
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", le.Uint32(g[:]), le.Uint16(g[4:]), le.Uint16(g[6:]), be.Uint16(g[8:]), g[10:])
}

func parseGUID(s string) (guid, error) {
	var g guid
	parts := strings.Split(s, "-")
	if len(s) != 36 || !slices.Equal(lengths(parts), []int{8, 4, 4, 4, 12}) {
		return g, fmt.Errorf("%q is not a GUID", s)
	}
	b, err := hex.DecodeString(strings.Join(parts, ""))
	if err != nil {
		return g, fmt.Errorf("%q is not a GUID: %w", s, err)
	}
	slices.Reverse(b[0:4])
	slices.Reverse(b[4:6])
	slices.Reverse(b[6:8])
	return guid(b), nil
}

func lengths(parts []string) []int {
	var out []int
	for _, p := range parts {
		out = append(out, len(p))
	}
	return out
}

// nameUnits is the maximum length of a name, in UTF-16 units.
const nameUnits = 36

var errName = errors.New("the name is not valid text, or longer than 36 letters")

func encodeName(s string) ([]uint16, error) {
	u := utf16.Encode([]rune(s))
	if len(u) > nameUnits || !utf8.ValidString(s) || slices.Contains(u, 0) {
		return nil, errName
	}
	return u, nil
}

// decodeName decodes a name up to the first zero. Invalid UTF-16 becomes U+FFFD.
func decodeName(b []byte) string {
	var u []uint16
	for ; len(b) >= 2; b = b[2:] {
		c := binary.LittleEndian.Uint16(b)
		if c == 0 {
			break
		}
		u = append(u, c)
	}
	return string(utf16.Decode(u))
}
