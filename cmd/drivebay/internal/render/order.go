package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// Order sorts drives by enclosure and bay, then those without a bay by the name that
// the kernel gives them.
func Order(drives []drivebay.Drive) []drivebay.Drive {
	out := slices.Clone(drives)
	slices.SortStableFunc(out, func(a, b drivebay.Drive) int {
		if (a.Slot.Bay == "") != (b.Slot.Bay == "") {
			return cmp.Compare(b.Slot.Bay, "") - cmp.Compare(a.Slot.Bay, "")
		}
		return cmp.Or(
			natural(a.Slot.Enclosure, b.Slot.Enclosure),
			natural(a.Slot.Bay, b.Slot.Bay),
			kernelOrder(a.Name, b.Name),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return out
}

// kernelOrder compares kernel names as the kernel counts them: sdz is before sdaa.
func kernelOrder(a, b string) int {
	if len(a) > 2 && len(b) > 2 && a[:2] == b[:2] && !strings.ContainsAny(a+b, "0123456789") {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return natural(a, b)
}

// natural compares texts with the numbers in them as numbers: "Bay 9" is before
// "Bay 10".
func natural(a, b string) int {
	for a != "" && b != "" {
		x, restA := chunk(a)
		y, restB := chunk(b)
		c := cmp.Compare(x, y)
		if isDigit(x[0]) && isDigit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			c = cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		}
		if c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// chunk splits off the leading run of digits or of anything else.
func chunk(s string) (head, rest string) {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
