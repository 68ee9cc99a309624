// Package render turns drives, volumes and events into text for people. Its functions
// are pure: they read no drive, wait for nothing and decide nothing.
package render

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

// Style holds how the text is drawn.
type Style struct {
	Color bool
	Width int       // columns of the screen; 0: no limit
	Now   time.Time // what ages are counted from
	// Machine has the drives; its name is not printed where it is not known.
	Machine drivebay.Machine
}

// SGR colors (ECMA-48 8.3.117).
const (
	red     = "1;31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	bold    = "1"
	faint   = "2"
)

var healthColor = map[drivebay.Health]string{
	drivebay.HealthGood: green, drivebay.HealthSuspect: yellow, drivebay.HealthBad: red, drivebay.HealthUnknown: magenta,
}

func (s Style) paint(code, text string) string {
	if !s.Color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Health returns the word of a health in its color.
func (s Style) Health(h drivebay.Health) string { return s.paint(healthColor[h], h.String()) }

// Clean makes a text that came from a drive safe to show: one line, without control
// characters.
func Clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "?")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// CleanLines does the same with each line of a text.
func CleanLines(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(Clean(line) + "\n")
	}
	return b.String()
}
