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

// le and be read little-endian and big-endian numbers: ATA and NVMe use the first, SCSI the
// second.
var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// ignored returns the error of a page that cannot be used.
func ignored(page, format string, args ...any) error {
	return fmt.Errorf("%s: %s: page ignored", page, fmt.Sprintf(format, args...))
}

// damaged adds a Problem for a part of a page that cannot be used while the rest can.
func damaged(ev *drivebay.Evidence, page, format string, args ...any) {
	ev.Problems = append(ev.Problems, drivebay.Problem{Page: page, Text: fmt.Sprintf(format, args...)})
}

// atLeast returns an error for a page of fewer than n bytes.
func atLeast(page string, b []byte, n int) error {
	if len(b) < n {
		return ignored(page, "%d bytes of at least %d", len(b), n)
	}
	return nil
}

// uniform reports whether every byte is v: an unnoticed failed command leaves a buffer of zeros, a
// bus without a driving device one of ones.
func uniform(b []byte, v byte) bool {
	for _, x := range b {
		if x != v {
			return false
		}
	}
	return true
}

// summed verifies the ATA data structure checksum: the 512 bytes add up to 0 (ACS-3, A.14.7; the
// other logs use the same).
func summed(page string, b []byte) error {
	if err := atLeast(page, b, sector); err != nil {
		return err
	}
	if b = b[:sector]; uniform(b, 0) || uniform(b, 0xFF) { // both add up to 0
		return ignored(page, "all bytes are %02Xh", b[0])
	}
	if checksum(b) != 0 {
		return ignored(page, "the checksum is wrong")
	}
	return nil
}

func checksum(b []byte) (sum byte) {
	for _, x := range b {
		sum += x
	}
	return sum
}

// text returns a string of a drive without leading and trailing blanks and NULs, and with the
// replacement character for bytes that are not UTF-8 or not printable.
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

// swapped swaps the bytes of ATA words: the first character of a string is in the upper half
// (ACS-4, 3.4.10).
func swapped(b []byte) []byte {
	out := make([]byte, len(b)&^1)
	for i := 0; i+1 < len(b); i += 2 {
		out[i], out[i+1] = b[i+1], b[i]
	}
	return out
}

// times returns the product, or the largest number on overflow.
func times(n, by uint64) uint64 {
	if by != 0 && n > math.MaxUint64/by {
		return math.MaxUint64
	}
	return n * by
}

// take replaces a value unless the new one is empty.
func take(into *string, s string) {
	if s != "" {
		*into = s
	}
}

// first sets a field that has no value yet.
func first[T any](into **T, v T) {
	if *into == nil {
		*into = &v
	}
}
