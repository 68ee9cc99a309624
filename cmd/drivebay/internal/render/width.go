package render

import (
	"strings"
	"unicode"
)

// wide are the runes that take two columns of a terminal: East Asian Width W and F of
// Unicode TR 11, and the pictures that terminals draw as wide.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f53d, Stride: 1}, {Lo: 0x1f5fb, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6c5, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300: // most text
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me): // drawn over the rune before it
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// columnsOf returns how many columns of a terminal a text takes.
func columnsOf(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// split splits a text after as many runes as fit a width, and after one at least.
func split(text string, width int) (head, rest string) {
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > width && i > 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// cut shortens a text to a number of columns; 0 is no limit.
func cut(text string, width int) string {
	if width <= 0 || columnsOf(text) <= width {
		return text
	}
	if width == 1 {
		return "…"
	}
	head, _ := split(text, width-1)
	return strings.TrimRight(head, " ") + "…"
}

// wordEnds are the runes after which a word that is longer than a line is broken.
const wordEnds = "-_/.,:;@+="

// word is a word of a text, with the spaces before it.
type word struct{ gap, text string }

// words returns the words of a text. A command in backquotes is one word if it fits a width.
func words(text string, width int) (out []word) {
	from := -1 // the first word of a command
	for text = strings.TrimRight(text, " "); text != ""; {
		rest := strings.TrimLeft(text, " ")
		w, _, _ := strings.Cut(rest, " ")
		out = append(out, word{text[:len(text)-len(rest)], w})
		text = rest[len(w):]
		if strings.Count(w, "`")%2 == 0 {
			continue
		}
		if from < 0 {
			from = len(out) - 1
			continue
		}
		command := out[from]
		for _, w := range out[from+1:] {
			command.text += w.gap + w.text
		}
		if columnsOf(command.text) <= width {
			out = append(out[:from], command)
		}
		from = -1
	}
	return out
}

// lines breaks a text at spaces into lines of a width. A word that is longer than a line is
// broken after one of wordEnds, else where the line ends: no part of it is lost. Within a line, columns
// that several spaces keep apart stay apart.
func lines(text string, width int) []string {
	if width <= 0 || columnsOf(text) <= width {
		return []string{text}
	}
	var out []string
	line := ""
	for _, w := range words(text, width) {
		if line != "" && columnsOf(line)+len(w.gap)+columnsOf(w.text) <= width {
			line += w.gap + w.text
			continue
		}
		if line != "" {
			out = append(out, line)
		}
		for columnsOf(w.text) > width {
			head, _ := split(w.text, width)
			if i := strings.LastIndexAny(head, wordEnds); i > 0 {
				head = head[:i+1]
			}
			out = append(out, head)
			w.text = w.text[len(head):]
		}
		line = w.text
	}
	if line != "" || len(out) == 0 {
		out = append(out, line)
	}
	return out
}

// wrapped breaks a text at spaces and indents every line.
func wrapped(text, indent string, width int) string {
	if width <= 0 {
		return indent + text + "\n"
	}
	var out strings.Builder
	for _, line := range lines(strings.Join(strings.Fields(text), " "), max(width-columnsOf(indent), 1)) {
		out.WriteString(indent + line + "\n")
	}
	return out.String()
}

// Wrap breaks the lines of a text that are longer than the screen is wide. The second and later parts
// of a line are indented more than its first.
func Wrap(text string, s Style) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if s.Width <= 0 || columnsOf(line) <= s.Width {
			out.WriteString(line + "\n")
			continue
		}
		content := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(content)]
		for i, part := range lines(content, max(s.Width-len(indent)-gap, narrowed)) {
			if i == 1 {
				indent += strings.Repeat(" ", gap)
			}
			out.WriteString(indent + part + "\n")
		}
	}
	return out.String()
}
