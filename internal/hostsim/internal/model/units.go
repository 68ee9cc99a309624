package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units of sizes. Drives are sold in powers of ten.
var units = []struct {
	name string
	by   float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"B", 1},
}

// ParseSize parses "3.84TB" or "16TiB".
func ParseSize(s string) (uint64, error) {
	for _, u := range units {
		num, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if bytes := n * u.by; err == nil && n >= 0 && bytes < math.MaxInt64 {
			return uint64(math.Round(bytes)), nil
		}
		break
	}
	return 0, fmt.Errorf("size %q: want a number and a unit, as in 3.84TB or 16TiB", s)
}

// maxRange limits a list of bays, so that a typing error does not fill the memory.
const maxRange = 1000

// ParseRange parses "0-3,8".
func ParseRange(s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(first)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(last)
		}
		if err != nil || a < 0 || b < a || b-a >= maxRange {
			return nil, fmt.Errorf("bays %q: want numbers and ranges, as in 0-3,8", s)
		}
		for n := a; n <= b; n++ {
			out = append(out, n)
		}
	}
	return out, nil
}
