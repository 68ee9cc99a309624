package metrics

import (
	"hash/maphash"
	"strconv"
	"strings"
)

// page is a text in the exposition format 0.0.4 of Prometheus. Whatever the names of the drives,
// it contains no series twice and no bytes that are not UTF-8: either would make Prometheus reject
// the whole page.
type page struct {
	text []byte
	seen map[uint64]bool // hashes of the series of the current family and object
}

// escapes replaces the characters that a label value must not hold.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// whole writes a family about all objects together.
func whole[T any](p *page, of T, m metric[T]) {
	p.family("drivebay_"+m.name, m.help, m.kind, func(name string) {
		p.seen = map[uint64]bool{}
		m.values(of, func(v float64, labels ...string) { p.sample(name, m.labels, labels, v) })
	})
}

// each writes a family with series for each object, labeled with its id. Of two objects with the
// same id only the first is written.
func each[T any](p *page, kind string, all []*T, id func(*T) string, m metric[*T]) {
	names := append([]string{kind}, m.labels...)
	values := make([]string, len(names))
	p.family("drivebay_"+kind+"_"+m.name, m.help, m.kind, func(name string) {
		written := map[string]bool{}
		p.seen = map[uint64]bool{}
		for _, one := range all {
			values[0] = strings.ToValidUTF8(id(one), "\uFFFD")
			if written[values[0]] {
				continue
			}
			written[values[0]] = true
			clear(p.seen)
			m.values(one, func(v float64, labels ...string) {
				copy(values[1:], labels)
				p.sample(name, names, values, v)
			})
		}
	})
}

// family writes the header and the samples of a family, or nothing if there are no samples.
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
