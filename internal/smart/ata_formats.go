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

// warmth: degrees in the low byte, as a signed number, and mostly the extremes
// above it. The layout is told from its shape; they are those that smartctl knows
// (smartmontools, format tempminmax). Where none fits, because a vendor keeps one
// extreme only or those of another time, the bytes are shown as they are, the
// highest first, as smartctl shows them: nothing is hidden and nothing made up.
func warmth(raw uint64) (uint64, string) {
	n, t, above := raw&0xFF, int8(raw), raw>>32
	alone := degrees(uint16(raw))
	if alone && raw>>16 == 0 {
		return n, fmt.Sprint(t)
	}
	for _, l := range []struct {
		fits bool
		a, b uint // where the extremes stand, in either order
	}{
		{alone && above == 0, 16, 24}, // Maxtor, Samsung, Seagate, Toshiba
		{raw>>24 == 0, 8, 16},         // Western Digital
		{above != 0 && degrees(uint16(raw), uint16(raw>>16), uint16(raw>>32)), 16, 32}, // Hitachi; Kingston the other way round
	} {
		if low, high, ok := extremes(t, raw>>l.a, raw>>l.b); ok && l.fits {
			return n, fmt.Sprintf("%d (Min/Max %d/%d)", t, low, high)
		}
	}
	// Western Digital: how often it was too hot; then it was hot at least once.
	if low, high, ok := extremes(t, raw>>16, raw>>24); ok && alone && 0 < above && above < 0x7FFF && high >= 40 {
		return n, fmt.Sprintf("%d (Min/Max %d/%d #%d)", t, low, high, above)
	}
	return n, fmt.Sprintf("%d (%d %d %d %d %d)", n, raw>>40, raw>>32&0xFF, raw>>24&0xFF, raw>>16&0xFF, raw>>8&0xFF)
}

// degrees says whether words hold a byte each, all of them with their sign
// extended or none.
func degrees(words ...uint16) bool {
	bare, signed := true, true
	for _, w := range words {
		bare, signed = bare && w <= 0xFF, signed && int16(w) == int16(int8(w))
	}
	return bare || signed
}

// extremes are two bytes between which t lies and which a drive can live through.
// FFh beside 00h is no frost but flags.
func extremes(t int8, a, b uint64) (low, high int8, ok bool) {
	low, high = min(int8(a), int8(b)), max(int8(a), int8(b))
	return low, high, -60 <= low && low <= t && t <= high && high <= 120 && (low != -1 || high > 0)
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
