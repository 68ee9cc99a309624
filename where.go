package drivebay

import (
	"cmp"
	"slices"
	"strings"
)

// Where describes the place of a drive for an operator: server, bay, enclosure, the serial
// and WWN of its label, and the drives beside it.
func (s *Snapshot) Where(d *Drive) string {
	var parts []string
	add := func(word, value string) {
		if value != "" {
			parts = append(parts, word+" "+value)
		}
	}
	label := "serial"
	if server := s.Machine.Hardware.Server(); server != "" {
		parts, label = append(parts, server), "drive serial"
	}
	if d.Slot.Bay == "" {
		parts = append(parts, "in an unknown bay")
	}
	add("bay", d.Slot.Bay)
	add("enclosure", d.Slot.Enclosure)
	add(label, d.Serial)
	add("WWN", d.WWN)
	left, right := s.beside(d)
	switch {
	case left != "" && right != "":
		add("between", left+" and "+right)
	default:
		add("beside", left+right)
	}
	return strings.Join(parts, ", ")
}

// beside describes the bays on both sides of the drive's bay, in the order of their names.
func (s *Snapshot) beside(d *Drive) (left, right string) {
	var row []*Bay
	for i := range s.Bays {
		if b := &s.Bays[i]; d.Slot.Bay != "" && b.Enclosure == d.Slot.Enclosure {
			row = append(row, b)
		}
	}
	slices.SortFunc(row, func(a, b *Bay) int {
		return cmp.Or(cmp.Compare(len(a.Bay), len(b.Bay)), cmp.Compare(a.Bay, b.Bay)) // "9" before "10"
	})
	i := slices.IndexFunc(row, func(b *Bay) bool { return b.Bay == d.Slot.Bay })
	if i > 0 {
		left = s.content(row[i-1])
	}
	if i >= 0 && i+1 < len(row) {
		right = s.content(row[i+1])
	}
	return left, right
}

func (s *Snapshot) content(b *Bay) string {
	i := slices.IndexFunc(s.Drives, func(d Drive) bool { return d.ID == b.Drive })
	if i < 0 {
		return b.Bay + " (empty)"
	}
	return b.Bay + " (serial " + cmp.Or(s.Drives[i].Serial, "unknown") + ")"
}

// BayOf returns the bay of a drive with its lights as they are now.
func (s *Snapshot) BayOf(d *Drive) Slot {
	for i := range s.Bays {
		if b := &s.Bays[i]; b.Bay == d.Slot.Bay && b.Enclosure == d.Slot.Enclosure {
			return b.Slot
		}
	}
	return d.Slot
}

// Successor returns the drive that has taken the place of a removed one, else the drive that is in its bay and may take it;
// nil: no drive has or may.
func (s *Snapshot) Successor(d *Drive) (out *Drive) {
	for i := range s.Drives {
		switch o := &s.Drives[i]; {
		case o.Succeeds == nil || o.Succeeds.Of != d.ID:
		case !o.Succeeds.Taken.IsZero():
			return o
		case out == nil && o.Status == StatusOnline:
			out = o
		}
	}
	return out
}

// Replaced reports whether another drive has taken the place of a removed one.
func (s *Snapshot) Replaced(d *Drive) bool {
	o := s.Successor(d)
	return o != nil && !o.Succeeds.Taken.IsZero()
}

// Light describes which LED of the drive's bay is lit now.
func (s *Snapshot) Light(d *Drive) string {
	slot := s.BayOf(d)
	switch {
	case slot.FaultLit && slot.Lit:
		return "its light and its fault light are lit"
	case slot.FaultLit:
		return "its fault light is lit"
	case slot.Lit:
		return "its light is lit"
	case slot.Locate != "" || slot.Fault != "":
		return "its light is not lit"
	}
	return "it has no light that the kernel can reach: go by the bay and the label"
}
