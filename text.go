package drivebay

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// PlainText returns a string as valid UTF-8 without control characters, cut to limit bytes.
func PlainText(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit] // the rest is cut anyway
	}
	return Clip(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")), limit)
}

// Clip cuts a string between two runes so that it has at most limit bytes.
func Clip(s string, limit int) string {
	const dots = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + dots
}

// DurationText writes a duration for people, in one unit.
func DurationText(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= 2*u.length {
			return fmt.Sprintf("%d %s", d/u.length, u.name)
		}
	}
	if d < time.Second && d > 0 {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%d s", max(d, 0)/time.Second)
}

// maxShort is the limit of CSI for a string. It applies to the messages of the health
// calls (csi.proto 1.13, "Size Limits").
const maxShort = 128 // bytes

// Short returns the message in at most 128 bytes, its cause first and without paths: it is
// shown outside the node, where the paths of the node mean nothing.
func (f VolumeFinding) Short() string { return shorten(f.Message) }

// Short returns the message in at most 128 bytes, without paths.
func (f StorageFinding) Short() string { return shorten(f.Message) }

// shorten removes paths from a text and cuts it after the last word that fits.
func shorten(s string) string {
	const dots = " …"
	s = withoutPaths(PlainText(s, MaxConditionMessage))
	if len(s) <= maxShort {
		return s
	}
	end := maxShort - len(dots)
	if i := strings.LastIndexByte(s[:end+1], ' '); i > 0 {
		return strings.TrimRight(s[:i], " ,;:(") + dots
	}
	return Clip(s, maxShort) // a single word
}

// withoutPaths removes every word that is a path, and replaces the slash in other words
// ("input/output error", "vg/lv").
func withoutPaths(s string) string {
	var out []string
	for _, word := range strings.Fields(s) {
		before, _, found := strings.Cut(word, "/")
		last, _ := utf8.DecodeLastRuneInString(before)
		if !found || before != "" && !strings.ContainsRune("\"'`([=:", last) {
			out = append(out, strings.NewReplacer("I/O", "IO", "/", "-").Replace(word))
			continue
		}
		// Punctuation after a path moves to the word before it.
		if stop := word[len(word)-1]; len(out) > 0 && strings.IndexByte(":;,.", stop) >= 0 {
			out[len(out)-1] = strings.TrimRight(out[len(out)-1], ":;,.") + string(stop)
		}
	}
	return strings.Join(out, " ")
}
