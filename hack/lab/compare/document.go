package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// document is a JSON document as the list of its leaves, in its own order.
type document struct {
	leaves []*leaf
	at     map[string]*leaf
}

// leaf is one value of a document: what stands at the end of a path.
type leaf struct {
	path string // "ata_smart_attributes.table[3].raw.value"
	text string // the value in JSON's digits and words, a string without its quotes
	doc  *document
}

// read takes a document apart. Numbers keep the digits that they were written
// with: counters of NVMe are wider than any number of Go.
func read(b []byte) (*document, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	d := &document{at: map[string]*leaf{}}
	if err := d.value(dec, ""); err != nil {
		return nil, fmt.Errorf("reading smartctl's document: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading smartctl's document: something follows its end")
	}
	return d, nil
}

func (d *document) value(dec *json.Decoder, path string) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	delim, nested := t.(json.Delim)
	if !nested {
		l := &leaf{path: path, text: fmt.Sprint(t), doc: d}
		d.leaves = append(d.leaves, l)
		d.at[path] = l
		return nil
	}
	for i := 0; dec.More(); i++ {
		below := path + "[" + strconv.Itoa(i) + "]"
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			below = join(path, fmt.Sprint(key))
		}
		if err := d.value(dec, below); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// text is the value at a path, "" where there is none.
func (d *document) text(path string) string {
	if l := d.at[path]; l != nil {
		return l.text
	}
	return ""
}

// A number in a path says which of many. smartctl counts the self-tests of a
// SCSI drive in the key itself.
var (
	counted = regexp.MustCompile(`\[(\d+)\]|^scsi_self_test_(\d+)`)
	inKey   = regexp.MustCompile(`^scsi_self_test_\d+`)
)

// kind is the path without its numbers, as the tables write it.
func (l *leaf) kind() string {
	return counted.ReplaceAllString(inKey.ReplaceAllString(l.path, "scsi_self_test_[]"), "[]")
}

// index is the n-th number in the path, -1 if there are fewer.
func (l *leaf) index(n int) int {
	found := counted.FindAllStringSubmatch(l.path, -1)
	if n >= len(found) {
		return -1
	}
	i, err := strconv.Atoi(found[n][1] + found[n][2])
	if err != nil {
		return -1
	}
	return i
}

// beside is the value at another key of the row that this leaf belongs to: the
// element of the innermost array around it.
func (l *leaf) beside(key string) string {
	around := counted.FindAllStringIndex(l.path, -1)
	if len(around) == 0 {
		return l.doc.text(key)
	}
	return l.doc.text(join(l.path[:around[len(around)-1][1]], key))
}

// number is the value as a number, ok is false if it is none that fits.
func (l *leaf) number() (n uint64, ok bool) {
	n, err := strconv.ParseUint(l.text, 10, 64)
	return n, err == nil
}
