package lvm

// plainReport decodes a report whose fields are all strings of printable ASCII without escapes, as
// LVM 2.03.16 writes it. The daemon reads a report every few seconds, and encoding/json needs a
// multiple of the time for it. ok is false for any other text, valid or not, which is left to
// encoding/json.
func plainReport(text string) (sections []section, ok bool) {
	p := plainText{all: text}
	p.expect('{')
	if p.name() != "report" {
		return nil, false
	}
	sections = []section{}
	p.list(func() { sections = append(sections, p.section()) })
	p.expect('}')
	return sections, !p.bad && p.space() == len(text)
}

// plainText is a text that is decoded up to at. bad: encoding/json has to decode it.
type plainText struct {
	all string
	at  int
	bad bool

	fields int // of the last row: the next one has as many
}

// space skips white space, and returns where the text goes on.
func (p *plainText) space() int {
	for ; p.at < len(p.all); p.at++ {
		if c := p.all[p.at]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			break
		}
	}
	return p.at
}

// next skips a character if it is the next one.
func (p *plainText) next(c byte) bool {
	i := p.space()
	if p.bad || i == len(p.all) || p.all[i] != c {
		return false
	}
	p.at++
	return true
}

func (p *plainText) expect(c byte) { p.bad = !p.next(c) }

// text decodes a string.
func (p *plainText) text() string {
	if p.expect('"'); p.bad {
		return ""
	}
	for i := p.at; i < len(p.all); i++ {
		switch c := p.all[i]; {
		case c == '"':
			s := p.all[p.at:i]
			p.at = i + 1
			return s
		case c == '\\' || c < ' ' || c > '~':
			p.bad = true
			return ""
		}
	}
	p.bad = true
	return ""
}

// name decodes the name of a field, with the colon.
func (p *plainText) name() string {
	s := p.text()
	p.expect(':')
	return s
}

// list decodes a list, with a function that decodes an element.
func (p *plainText) list(one func()) {
	p.expect('[')
	p.elements(']', one)
}

// elements decodes what is separated by commas, up to the closing bracket.
func (p *plainText) elements(end byte, one func()) {
	if p.bad || p.next(end) {
		return
	}
	for one(); p.next(','); {
		one()
	}
	p.expect(end)
}

func (p *plainText) section() (s section) {
	parts := map[string]*[]row{"vg": &s.Group, "pv": &s.PV, "lv": &s.LV, "seg": &s.Segment, "pvseg": &s.Extent}
	p.expect('{')
	p.elements('}', func() {
		to := parts[p.name()]
		if to == nil || *to != nil { // unknown, or twice
			p.bad = true
			return
		}
		*to = []row{}
		p.list(func() { *to = append(*to, p.row()) })
	})
	return s
}

func (p *plainText) row() row {
	p.expect('{')
	out := make(row, p.fields)
	p.elements('}', func() {
		name := p.name()
		out[name] = value(p.text())
	})
	p.fields = len(out)
	return out
}
