package smart

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/drivebay/drivebay"
)

const sector = 512

// le reads little-endian numbers, be big-endian ones: ATA and NVMe write the
// first, SCSI the second.
var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// ignored is the error of a page that cannot be used.
func ignored(page, format string, args ...any) error {
	return fmt.Errorf("%s: %s: page ignored", page, fmt.Sprintf(format, args...))
}

// damaged notes a part of a page that cannot be used while the rest can.
func damaged(ev *drivebay.Evidence, page, format string, args ...any) {
	ev.Problems = append(ev.Problems, drivebay.Problem{Page: page, Text: fmt.Sprintf(format, args...)})
}

// atLeast refuses a page that is shorter than what it must hold.
func atLeast(page string, b []byte, n int) error {
	if len(b) < n {
		return ignored(page, "%d bytes of at least %d", len(b), n)
	}
	return nil
}

// uniform reports whether every byte is v: a command that failed and was not
// noticed leaves a buffer of zeros, a bus that nobody drives one of ones.
func uniform(b []byte, v byte) bool {
	for _, x := range b {
		if x != v {
			return false
		}
	}
	return true
}

// summed checks the ATA data structure checksum: the 512 bytes add up to 0 (ACS-3, A.14.7 and the other logs alike).
func summed(page string, b []byte) error {
	if err := atLeast(page, b, sector); err != nil {
		return err
	}
	if b = b[:sector]; uniform(b, 0) || uniform(b, 0xFF) { // both add up to 0
		return ignored(page, "all bytes are %02Xh", b[0])
	}
	if checksum(b) != 0 {
		return ignored(page, "checksum is wrong")
	}
	return nil
}

func checksum(b []byte) (sum byte) {
	for _, x := range b {
		sum += x
	}
	return sum
}

// text cleans a string of a drive: blanks and NULs around it go, what is not
// UTF-8 or not printable becomes the replacement character.
func text(b []byte) string {
	s := strings.ToValidUTF8(string(b), string(unicode.ReplacementChar))
	s = strings.Map(func(r rune) rune {
		switch {
		case r == 0:
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// swapped turns the bytes of ATA words round: the first character of a string is
// in the upper half (ACS-4, 3.4.10).
func swapped(b []byte) []byte {
	out := make([]byte, len(b)&^1)
	for i := 0; i+1 < len(b); i += 2 {
		out[i], out[i+1] = b[i+1], b[i]
	}
	return out
}

// times multiplies and holds at the largest instead of wrapping.
func times(n, by uint64) uint64 {
	if by != 0 && n > math.MaxUint64/by {
		return math.MaxUint64
	}
	return n * by
}

// take replaces a value only where the page had one to say.
func take(into *string, s string) {
	if s != "" {
		*into = s
	}
}

// first gives a field its value where nothing better was known before.
func first[T any](into **T, v T) {
	if *into == nil {
		*into = &v
	}
}
