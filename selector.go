package drivebay

import (
	"fmt"
	"path"
	"strings"
)

// Selectors select drives by their properties and place: a drive is selected if one of
// them matches it. An empty list selects no drive.
type Selectors []Selector

// Selector is a list of terms that must all match; "all" is the empty list.
type Selector []term

// term is "key=pattern", or a limit of the size ("size>=1TB").
type term struct {
	key, op, value string
	size           uint64
}

// selectorKeys holds the keys that a pattern can match; patterns are those of path.Match.
var selectorKeys = map[string]func(*Drive) string{
	"id":        func(d *Drive) string { return d.ID },
	"serial":    func(d *Drive) string { return d.Serial },
	"vendor":    func(d *Drive) string { return d.Vendor },
	"model":     func(d *Drive) string { return d.Model },
	"type":      func(d *Drive) string { return d.Type.String() },
	"transport": func(d *Drive) string { return d.Transport.String() },
	"bay":       func(d *Drive) string { return d.Slot.Bay },
	"enclosure": func(d *Drive) string { return d.Slot.Enclosure },
}

// MarshalText writes what UnmarshalText reads.
func (s Selectors) MarshalText() ([]byte, error) {
	var all []string
	for _, sel := range s {
		if len(sel) == 0 {
			all = append(all, "all")
			continue
		}
		var terms []string
		for _, t := range sel {
			terms = append(terms, t.key+t.op+t.value)
		}
		all = append(all, strings.Join(terms, ","))
	}
	return []byte(strings.Join(all, "; ")), nil
}

// UnmarshalText reads "type=nvme,size>=1TB; serial=S64H*" or "all".
func (s *Selectors) UnmarshalText(b []byte) error {
	*s = nil
	if strings.TrimSpace(string(b)) == "" {
		return nil
	}
	for one := range strings.SplitSeq(string(b), ";") {
		sel, err := parseSelector(strings.TrimSpace(one))
		if err != nil {
			return err
		}
		*s = append(*s, sel)
	}
	return nil
}

func parseSelector(text string) (Selector, error) {
	if text == "all" {
		return Selector{}, nil
	}
	var sel Selector
	for one := range strings.SplitSeq(text, ",") {
		t, err := parseTerm(strings.TrimSpace(one))
		if err != nil {
			return nil, fmt.Errorf("selector %q: %w", text, err)
		}
		sel = append(sel, t)
	}
	return sel, nil
}

func parseTerm(text string) (term, error) {
	for _, op := range []string{">=", "<=", "="} {
		key, value, ok := strings.Cut(text, op)
		if !ok {
			continue
		}
		t := term{key: strings.TrimSpace(key), op: op, value: strings.TrimSpace(value)}
		if t.value == "" {
			return t, fmt.Errorf("%w: %q has no value", ErrInvalid, text)
		}
		if op != "=" {
			return t.bound()
		}
		if selectorKeys[t.key] == nil {
			return t, fmt.Errorf("%w: unknown key %q: want id, serial, vendor, model, type, transport, bay, enclosure or size", ErrInvalid, t.key)
		}
		if _, err := path.Match(t.value, ""); err != nil {
			return t, fmt.Errorf("%w: pattern %q: %w", ErrInvalid, t.value, err)
		}
		return t, nil
	}
	return term{}, fmt.Errorf("%w: %q is no key=value, size>=value or size<=value", ErrInvalid, text)
}

func (t term) bound() (term, error) {
	if t.key != "size" {
		return t, fmt.Errorf("%w: only the size can be compared, not %q", ErrInvalid, t.key)
	}
	var err error
	t.size, err = ParseSize(t.value)
	return t, err
}

// Match reports whether a drive is selected.
func (s Selectors) Match(d *Drive) bool {
	for _, sel := range s {
		if sel.match(d) {
			return true
		}
	}
	return false
}

func (s Selector) match(d *Drive) bool {
	for _, t := range s {
		if !t.match(d) {
			return false
		}
	}
	return true
}

// match reports whether the term holds for a drive. It ignores case, because people write
// "nvme" for NVME. An upper limit does not match a drive of unknown size.
func (t term) match(d *Drive) bool {
	switch t.op {
	case ">=":
		return d.Size >= t.size
	case "<=":
		return d.Size <= t.size && d.Size > 0
	}
	ok, err := path.Match(strings.ToLower(t.value), strings.ToLower(selectorKeys[t.key](d)))
	return err == nil && ok
}
