package metrics

import (
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// page is a text in the exposition format 0.0.4 of Prometheus, being written. It
// cannot hold a series twice nor bytes that are no UTF-8, whatever the drives
// are called: either would cost the reader the whole page.
type page struct {
	text  []byte
	drive map[string]bool // ids written in this family
	seen  map[uint64]bool // hashes of the series written in this family, of this drive
}

// escapes are for what a label value may not hold as it is.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func (p *page) snapshot(s *drivebay.Snapshot, m metric[*drivebay.Snapshot]) {
	p.family("drivebay_"+m.name, m.help, m.kind, func(name string) {
		p.seen = map[uint64]bool{}
		m.values(s, func(v float64, labels ...string) { p.sample(name, m.labels, labels, v) })
	})
}

func (p *page) drives(drives []drivebay.Drive, m metric[*drivebay.Drive]) {
	names := append([]string{"drive"}, m.labels...)
	values := make([]string, len(names))
	p.family("drivebay_drive_"+m.name, m.help, m.kind, func(name string) {
		p.drive = map[string]bool{}
		p.seen = map[uint64]bool{}
		for i := range drives {
			values[0] = strings.ToValidUTF8(drives[i].ID, "\uFFFD")
			if p.drive[values[0]] {
				continue
			}
			p.drive[values[0]] = true
			clear(p.seen)
			m.values(&drives[i], func(v float64, labels ...string) {
				copy(values[1:], labels)
				p.sample(name, names, values, v)
			})
		}
	})
}

// family writes the head of a family, unless nothing follows.
func (p *page) family(name, help, kind string, samples func(name string)) {
	before := len(p.text)
	p.text = append(p.text, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
	after := len(p.text)
	if samples(name); len(p.text) == after {
		p.text = p.text[:before]
	}
}

func (p *page) sample(name string, labels, values []string, v float64) {
	start := len(p.text)
	p.text = append(p.text, name...)
	for i, label := range labels {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		p.text = append(p.text, separator)
		p.text = append(p.text, label...)
		p.text = append(p.text, `="`...)
		p.text = append(p.text, clean(values[i])...)
		p.text = append(p.text, '"')
	}
	if len(labels) > 0 {
		p.text = append(p.text, '}')
	}
	hash := maphash.Bytes(seed, p.text[start:])
	if p.seen[hash] {
		p.text = p.text[:start]
		return
	}
	p.seen[hash] = true
	p.text = append(p.text, ' ')
	p.text = strconv.AppendFloat(p.text, v, 'g', -1, 64)
	p.text = append(p.text, '\n')
}

var seed = maphash.MakeSeed()

func clean(value string) string {
	return escapes.Replace(strings.ToValidUTF8(value, "\uFFFD"))
}
