package drivebay

import (
	"strings"
	"unicode/utf8"
)

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
	s = withoutPaths(plain(s, maxConditionMessage))
	if len(s) <= maxShort {
		return s
	}
	end := maxShort - len(dots)
	if i := strings.LastIndexByte(s[:end+1], ' '); i > 0 {
		return strings.TrimRight(s[:i], " ,;:(") + dots
	}
	return clip(s, maxShort) // a single word
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
