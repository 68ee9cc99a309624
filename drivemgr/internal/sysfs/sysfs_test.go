package sysfs

import "testing"

// TestClean: what is shown of an attribute is one line of valid text, with one space between words.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"\n":                      "",
		"live\n":                  "live",
		"  HGST HUS   \n":         "HGST HUS",
		"two  spaces":             "two spaces",
		"a\tb\x00c\x7fd":          "a b c d",
		"caf\u00e9 \u00a0 \u2028": "caf\u00e9",
		"\x00 x \x00":             "x",
		"bad \xff\xfe":            "bad \uFFFD",
		" ! ~ ":                   "! ~",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
