package render

import "strings"

// column is one column of a table.
type column struct {
	head  string
	right bool
	drop  int // a narrow screen drops the column with the highest value first; 0: never
	wrap  int // a narrow screen breaks its texts into lines, from this width on; 0: it stays as wide as its texts
	most  int // number of lines of a text that are shown on a screen; 0: all
}

// cell is a text and its color. Color adds no width.
type cell struct{ text, color string }

// table aligns cells. On a screen that is too narrow, columns are dropped in their order, and
// texts are broken into lines.
type table struct {
	columns []column
	rows    [][]cell
	keep    bool // no column is dropped: the caller chose them
	bare    bool // without heads
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
	lastLeft = 16 // width from which on the last column is broken into lines
	narrowed = 6  // width to which columns are narrowed where nothing else makes a row fit
)

func (t *table) String(s Style) string {
	for _, row := range t.rows {
		for i := range row {
			row[i].text = Clean(row[i].text)
		}
	}
	shown, widths := t.fit(s.Width)
	var out strings.Builder
	if !t.bare {
		head := make([]cell, len(t.columns))
		for i, c := range t.columns {
			head[i] = cell{c.head, bold}
		}
		t.row(&out, s, head, widths, shown)
	}
	for _, row := range t.rows {
		t.row(&out, s, row, widths, shown)
	}
	return out.String()
}

// natural returns the width of each column without a limit.
func (t *table) natural() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		if !t.bare {
			widths[i] = columnsOf(c.head)
		}
		for _, row := range t.rows {
			widths[i] = max(widths[i], columnsOf(row[i].text))
		}
	}
	return widths
}

// fit returns which columns a screen shows, and their widths; width 0 is no limit.
func (t *table) fit(width int) (shown []bool, widths []int) {
	full := t.natural()
	shown = make([]bool, len(full))
	for i := range shown {
		shown[i] = true
	}
	if width <= 0 {
		return shown, full
	}
	widths = make([]int, len(full))
	for i, c := range t.columns {
		widths[i] = full[i]
		if c.wrap == 0 && i == len(t.columns)-1 {
			c.wrap = lastLeft
		}
		if c.wrap > 0 {
			widths[i] = min(full[i], max(c.wrap, columnsOf(c.head)))
		}
	}
	for lineWidth(widths, shown) > width && t.dropOne(shown) {
	}
	for lineWidth(widths, shown) > width && narrow(widths, shown) {
	}
	for left := width - lineWidth(widths, shown); left > 0 && widen(widths, full, shown); left-- {
	}
	return shown, widths
}

func lineWidth(widths []int, shown []bool) int {
	n := -gap
	for i, w := range widths {
		if shown[i] {
			n += w + gap
		}
	}
	return n
}

// dropOne drops a column that says nothing, else the one with the highest drop. It returns
// false if none may be dropped.
func (t *table) dropOne(shown []bool) bool {
	if t.keep {
		return false
	}
	worst := -1
	for i, c := range t.columns {
		switch {
		case !shown[i]:
		case t.says(i):
			if c.drop > 0 && (worst < 0 || c.drop > t.columns[worst].drop) {
				worst = i
			}
		default:
			shown[i] = false
			return true
		}
	}
	if worst >= 0 {
		shown[worst] = false
	}
	return worst >= 0
}

// says reports whether a column has a text in any row.
func (t *table) says(i int) bool {
	for _, row := range t.rows {
		if row[i].text != "" && row[i].text != "-" {
			return true
		}
	}
	return false
}

// narrow takes one from the widest column. It returns false if all are narrow.
func narrow(widths []int, shown []bool) bool {
	widest := -1
	for i, w := range widths {
		if shown[i] && w > narrowed && (widest < 0 || w >= widths[widest]) {
			widest = i
		}
	}
	if widest >= 0 {
		widths[widest]--
	}
	return widest >= 0
}

// widen gives one to the column whose longest text takes the most lines. It returns false if
// all texts fit.
func widen(widths, full []int, shown []bool) bool {
	worst := -1
	for i, w := range widths {
		if shown[i] && w < full[i] && (worst < 0 || full[i]*widths[worst] > full[worst]*w) {
			worst = i
		}
	}
	if worst >= 0 {
		widths[worst]++
	}
	return worst >= 0
}

// row writes a row, in as many lines as its longest cell takes.
func (t *table) row(out *strings.Builder, s Style, cells []cell, widths []int, shown []bool) {
	broken, height := make([][]string, len(cells)), 1
	for i, c := range cells {
		if shown[i] {
			broken[i] = t.broken(c.text, i, widths[i], s.Width)
			height = max(height, len(broken[i]))
		}
	}
	for n := range height {
		line := make([]cell, 0, len(cells))
		for i, c := range cells {
			c.text = ""
			if n < len(broken[i]) {
				c.text = broken[i][n]
			}
			line = append(line, c)
		}
		t.line(out, s, line, widths, shown)
	}
}

// broken returns the lines of a text in a column. A screen shows the first ones of a text that
// takes too many.
func (t *table) broken(text string, i, width, screen int) []string {
	if screen <= 0 {
		return []string{text}
	}
	all := lines(text, width)
	if most := t.columns[i].most; most > 0 && len(all) > most {
		last := cut(all[most-1]+" "+all[most]+" …", width)
		all = append(all[:most-1:most-1], last)
	}
	return all
}

func (t *table) line(out *strings.Builder, s Style, cells []cell, widths []int, shown []bool) {
	var line strings.Builder
	blank := 0 // spaces before the next text, so that no line ends in spaces
	for i, c := range cells {
		if !shown[i] {
			continue
		}
		room := max(widths[i]-columnsOf(c.text), 0)
		before, after := 0, room
		if t.columns[i].right {
			before, after = room, 0
		}
		if c.text != "" {
			line.WriteString(strings.Repeat(" ", blank+before) + s.paint(c.color, c.text))
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
		width = max(width, columnsOf(n))
	}
	var out strings.Builder
	for i, n := range p.names {
		space := strings.Repeat(" ", width-columnsOf(n)+gap)
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
