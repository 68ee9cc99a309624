package smart

import "fmt"

// A format says what the 48 raw bits of an attribute mean: the number that
// counts, and the words for people. The numbers beside the one that counts are
// the vendor's own (extremes, spare pools, totals).
type format func(raw uint64) (count uint64, text string)

// plain: all 48 bits are one number.
func plain(raw uint64) (uint64, string) { return raw, fmt.Sprint(raw) }

// word: the low 16 bits count. Fujitsu keeps the size of the spare pool above
// them (5 = 8589934592000 is 0 of 2000), Hitachi the retries (2818091 is 43).
func word(raw uint64) (uint64, string) {
	return raw & 0xFFFF, beside(raw&0xFFFF, raw>>16&0xFFFF, raw>>32)
}

func beside(n, a, b uint64) string {
	if a == 0 && b == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (%d %d)", n, b, a)
}

// average: the low word is the last one, the next the average.
func average(raw uint64) (uint64, string) {
	n, avg := raw&0xFFFF, raw>>16&0xFFFF
	if avg == 0 {
		return n, fmt.Sprint(n)
	}
	return n, fmt.Sprintf("%d (Average %d)", n, avg)
}

// three: three words, the lowest counts.
func three(raw uint64) (uint64, string) {
	return raw & 0xFFFF, fmt.Sprintf("%d %d %d", raw>>32, raw>>16&0xFFFF, raw&0xFFFF)
}

// wordAlone: the lowest word counts, what stands above it is not known.
func wordAlone(raw uint64) (uint64, string) { return raw & 0xFFFF, fmt.Sprint(raw & 0xFFFF) }

// over: errors in the upper 16 bits, operations in the lower 32 (Seagate's error
// rates, SandForce's).
func over(raw uint64) (uint64, string) {
	return raw >> 32, fmt.Sprintf("%d/%d", raw>>32, raw&0xFFFFFFFF)
}

// badBlocks: blocks found bad in the factory in the upper 16 bits, those that
// went bad later in the lowest 16, which count.
func badBlocks(raw uint64) (uint64, string) {
	return raw & 0xFFFF, fmt.Sprintf("%d/%d", raw>>32, raw&0xFFFF)
}

// tens: tenths of degrees in the low word.
func tens(raw uint64) (uint64, string) {
	n := raw & 0xFFFF
	return n / 10, fmt.Sprintf("%d.%d", n/10, n%10)
}

// warmth: degrees in the low byte, extremes above it in one of several layouts.
func warmth(raw uint64) (uint64, string) {
	n := raw & 0xFF
	for _, shift := range [][2]uint{{16, 32}, {32, 16}, {16, 24}} { // lowest, highest
		low, high := int8(raw>>shift[0]), int8(raw>>shift[1])
		if raw>>8 != 0 && n < 128 && low <= int8(n) && int8(n) <= high && high > 0 && low > -60 {
			return n, fmt.Sprintf("%d (Min/Max %d/%d)", n, low, high)
		}
	}
	return n, fmt.Sprint(n)
}

// hours: 24 bits of hours; above them fractions of one or flags.
func hours(raw uint64) (uint64, string) {
	n := raw & 0xFFFFFF
	if rest := raw >> 24; rest != 0 {
		return n, fmt.Sprintf("%d (%d %d %d)", n, rest>>16, rest>>8&0xFF, rest&0xFF)
	}
	return n, fmt.Sprint(n)
}

// hoursMsec: 32 bits of hours, above them milliseconds of the current one.
func hoursMsec(raw uint64) (uint64, string) { return raw & 0xFFFFFFFF, fmt.Sprint(raw & 0xFFFFFFFF) }

func seconds(raw uint64) (uint64, string) { return clock(raw) }

func minutes(raw uint64) (uint64, string) { return clock(raw * 60) } // 48 bits times 60 fit

func halfMinutes(raw uint64) (uint64, string) { return clock(raw * 30) }

func clock(sec uint64) (uint64, string) {
	return sec / 3600, fmt.Sprintf("%dh+%02dm+%02ds", sec/3600, sec/60%60, sec%60)
}
