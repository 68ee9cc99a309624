package smart

import "fmt"

// format splits the 48 raw bits of an attribute: it returns the number that counts, and a text for
// people. The numbers beside the one that counts are vendor specific (extremes, spare pools,
// totals).
type format func(raw uint64) (count uint64, text string)

// plain reads all 48 bits as one number.
func plain(raw uint64) (uint64, string) { return raw, fmt.Sprint(raw) }

// word reads the low 16 bits. Fujitsu keeps the size of the spare pool above them (5 =
// 8589934592000 is 0 of 2000), Hitachi the retries (2818091 is 43).
func word(raw uint64) (uint64, string) {
	return raw & 0xFFFF, beside(raw&0xFFFF, raw>>16&0xFFFF, raw>>32)
}

func beside(n, a, b uint64) string {
	if a == 0 && b == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (%d %d)", n, b, a)
}

// average reads the last value from the low word and the average from the next.
func average(raw uint64) (uint64, string) {
	n, avg := raw&0xFFFF, raw>>16&0xFFFF
	if avg == 0 {
		return n, fmt.Sprint(n)
	}
	return n, fmt.Sprintf("%d (Average %d)", n, avg)
}

// three reads the lowest of three words and shows all of them.
func three(raw uint64) (uint64, string) {
	return raw & 0xFFFF, fmt.Sprintf("%d %d %d", raw>>32, raw>>16&0xFFFF, raw&0xFFFF)
}

// wordAlone reads the lowest word; the meaning of the upper ones is unknown.
func wordAlone(raw uint64) (uint64, string) { return raw & 0xFFFF, fmt.Sprint(raw & 0xFFFF) }

// over reads errors from the upper 16 bits and operations from the lower 32 (the error rates of
// Seagate and SandForce).
func over(raw uint64) (uint64, string) {
	return raw >> 32, fmt.Sprintf("%d/%d", raw>>32, raw&0xFFFFFFFF)
}

// badBlocks reads the blocks that went bad in use from the lowest 16 bits, and shows the bad
// blocks from the factory, in the upper 16, before them.
func badBlocks(raw uint64) (uint64, string) {
	return raw & 0xFFFF, fmt.Sprintf("%d/%d", raw>>32, raw&0xFFFF)
}

// tens reads tenths of degrees from the low word.
func tens(raw uint64) (uint64, string) {
	n := raw & 0xFFFF
	return n / 10, fmt.Sprintf("%d.%d", n/10, n%10)
}

// warmth reads degrees from the low byte, as a signed number; most vendors keep the extremes above
// it. The layout is derived from the value; the layouts are those of smartctl (smartmontools,
// format tempminmax). Where none fits, because a vendor keeps one extreme only or extremes of
// another time, the bytes are shown unchanged, the highest first, as smartctl shows them.
func warmth(raw uint64) (uint64, string) {
	n, t, above := raw&0xFF, int8(raw), raw>>32
	alone := degrees(uint16(raw))
	if alone && raw>>16 == 0 {
		return n, fmt.Sprint(t)
	}
	for _, l := range []struct {
		fits bool
		a, b uint // shifts of the extremes, in either order
	}{
		{alone && above == 0, 16, 24}, // Maxtor, Samsung, Seagate, Toshiba
		{raw>>24 == 0, 8, 16},         // Western Digital
		{above != 0 && degrees(uint16(raw), uint16(raw>>16), uint16(raw>>32)), 16, 32}, // Hitachi; Kingston in reverse order
	} {
		if low, high, ok := extremes(t, raw>>l.a, raw>>l.b); ok && l.fits {
			return n, fmt.Sprintf("%d (Min/Max %d/%d)", t, low, high)
		}
	}
	// Western Digital keeps a count of overheating above the extremes; the highest is at least 40
	// then.
	if low, high, ok := extremes(t, raw>>16, raw>>24); ok && alone && 0 < above && above < 0x7FFF && high >= 40 {
		return n, fmt.Sprintf("%d (Min/Max %d/%d #%d)", t, low, high, above)
	}
	return n, fmt.Sprintf("%d (%d %d %d %d %d)", n, raw>>40, raw>>32&0xFF, raw>>24&0xFF, raw>>16&0xFF, raw>>8&0xFF)
}

// degrees reports whether each word holds one byte, either all sign-extended or none.
func degrees(words ...uint16) bool {
	bare, signed := true, true
	for _, w := range words {
		bare, signed = bare && w <= 0xFF, signed && int16(w) == int16(int8(w))
	}
	return bare || signed
}

// extremes returns two bytes as the lowest and highest temperature, and reports whether t lies
// between them and a drive can survive them. FFh beside 00h are flags and not -1 degree.
func extremes(t int8, a, b uint64) (low, high int8, ok bool) {
	low, high = min(int8(a), int8(b)), max(int8(a), int8(b))
	return low, high, -60 <= low && low <= t && t <= high && high <= 120 && (low != -1 || high > 0)
}

// hours reads 24 bits of hours; the bits above hold fractions of an hour or flags.
func hours(raw uint64) (uint64, string) {
	n := raw & 0xFFFFFF
	if rest := raw >> 24; rest != 0 {
		return n, fmt.Sprintf("%d (%d %d %d)", n, rest>>16, rest>>8&0xFF, rest&0xFF)
	}
	return n, fmt.Sprint(n)
}

// hoursMsec reads 32 bits of hours; the bits above hold milliseconds of the current one.
func hoursMsec(raw uint64) (uint64, string) { return raw & 0xFFFFFFFF, fmt.Sprint(raw & 0xFFFFFFFF) }

func seconds(raw uint64) (uint64, string) { return clock(raw) }

func minutes(raw uint64) (uint64, string) { return clock(raw * 60) } // 48 bits times 60 fit

func halfMinutes(raw uint64) (uint64, string) { return clock(raw * 30) }

func clock(sec uint64) (uint64, string) {
	return sec / 3600, fmt.Sprintf("%dh+%02dm+%02ds", sec/3600, sec/60%60, sec%60)
}
