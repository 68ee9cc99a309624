package render

import (
	"strings"
	"unicode/utf8"
)

// column is one column of a table.
type column struct {
	head  string
	right bool
	drop  int // a narrow screen drops the column with the highest value first; 0: never
}

// cell is a text and its color. Color adds no width.
type cell struct{ text, color string }

// table aligns cells. The last column takes the rest of the screen.
type table struct {
	columns []column
	rows    [][]cell
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// plain returns cells without color.
func plain(texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i].text = text
	}
	return cells
}

const (
	gap      = 2
	lastLeft = 16 // width of the last column below which other columns are dropped
)

func (t *table) String(s Style) string {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.head)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(Clean(row[i].text)))
		}
	}
	shown := t.fit(widths, s.Width)
	var out strings.Builder
	head := make([]cell, len(t.columns))
	for i, c := range t.columns {
		head[i] = cell{c.head, bold}
	}
	t.line(&out, s, head, widths, shown)
	for _, row := range t.rows {
		t.line(&out, s, row, widths, shown)
	}
	return out.String()
}

// fit reports which columns fit the screen, and narrows the last one.
func (t *table) fit(widths []int, width int) []bool {
	shown := make([]bool, len(widths))
	for i := range shown {
		shown[i] = true
	}
	if width <= 0 {
		return shown
	}
	last := len(widths) - 1
	for {
		used, worst := 0, -1
		for i := range last {
			if shown[i] {
				used += widths[i] + gap
				if d := t.columns[i].drop; d > 0 && (worst < 0 || d > t.columns[worst].drop) {
					worst = i
				}
			}
		}
		if used+min(widths[last], lastLeft) <= width || worst < 0 {
			widths[last] = min(widths[last], max(width-used, len(t.columns[last].head)))
			return shown
		}
		shown[worst] = false
	}
}

func (t *table) line(out *strings.Builder, s Style, cells []cell, widths []int, shown []bool) {
	var line strings.Builder
	blank := 0 // spaces before the next text, so that no line ends in spaces
	for i, c := range cells {
		if !shown[i] {
			continue
		}
		text := cut(Clean(c.text), widths[i])
		room := widths[i] - utf8.RuneCountInString(text)
		before, after := 0, room
		if t.columns[i].right {
			before, after = room, 0
		}
		if text != "" {
			line.WriteString(strings.Repeat(" ", blank+before) + s.paint(c.color, text))
			blank = after + gap
		} else {
			blank += room + gap
		}
	}
	out.WriteString(line.String() + "\n")
}

// pairs are names and values, one pair a line, with aligned values.
type pairs struct {
	names, values []string
}

// add adds a line, unless there is no value.
func (p *pairs) add(name, value string) {
	if value != "" {
		p.names, p.values = append(p.names, name), append(p.values, value)
	}
}

func (p *pairs) String(indent string) string {
	width := 0
	for _, n := range p.names {
		width = max(width, utf8.RuneCountInString(n))
	}
	var out strings.Builder
	for i, n := range p.names {
		space := strings.Repeat(" ", width-utf8.RuneCountInString(n)+gap)
		out.WriteString(indent + n + space + p.values[i] + "\n")
	}
	return out.String()
}

// Table aligns rows of plain text under their heads.
func Table(heads []string, rows [][]string, s Style) string {
	var t table
	for _, h := range heads {
		t.columns = append(t.columns, column{head: h})
	}
	for _, row := range rows {
		t.add(plain(row...)...)
	}
	return t.String(s)
}
