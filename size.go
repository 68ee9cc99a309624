package drivebay

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// sizeUnits are powers of 1000 as on the label of a drive, or of 1024 with an "i", each with and
// without "B": 10Gi is the notation of Kubernetes, 10GiB that of this program.
var sizeUnits = map[string]uint64{
	"": 1, "b": 1,
	"k": 1e3, "kb": 1e3, "ki": 1 << 10, "kib": 1 << 10,
	"m": 1e6, "mb": 1e6, "mi": 1 << 20, "mib": 1 << 20,
	"g": 1e9, "gb": 1e9, "gi": 1 << 30, "gib": 1 << 30,
	"t": 1e12, "tb": 1e12, "ti": 1 << 40, "tib": 1 << 40,
	"p": 1e15, "pb": 1e15, "pi": 1 << 50, "pib": 1 << 50,
}

// A number in a size is digits, and after a point digits again: no sign, exponent or separator.
var sizeText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)$`)

// maxSizeText is the length of the longest text that is read as a size.
const maxSizeText = 40

// ParseSize parses a size and returns bytes, rounded down: G and GB are 10^9, Gi and GiB are 2^30; a
// number without a unit is bytes.
func ParseSize(s string) (uint64, error) {
	m := sizeText.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || len(s) > maxSizeText {
		return 0, noSize(s, "is no size")
	}
	unit, known := sizeUnits[strings.ToLower(m[2])]
	if !known || m[2] == "m" { // Kubernetes reads 1m as a thousandth
		return 0, noSize(s, "has the unknown unit "+fmt.Sprintf("%q", m[2]))
	}
	n, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return 0, noSize(s, "is no size")
	}
	if unit == 1 && !n.IsInt() {
		return 0, noSize(s, "has a part of a byte")
	}
	n.Mul(n, new(big.Rat).SetInt(new(big.Int).SetUint64(unit)))
	bytes := new(big.Int).Quo(n.Num(), n.Denom())
	if !bytes.IsUint64() {
		return 0, noSize(s, "is larger than any drive")
	}
	return bytes.Uint64(), nil
}

func noSize(s, why string) error {
	return fmt.Errorf("%w: %q %s: write it as 10GiB or 10Gi (10 x 2^30 bytes), 960GB or 960G (960 x 10^9), 1.5TiB, or in bytes", ErrInvalid, s, why)
}

// DecimalSize formats a size in powers of ten, as printed on drives.
func DecimalSize(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	value, unit := float64(n), 0
	for value >= 999.5 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	if unit == 0 || value >= 99.95 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + units[unit]
}
