package lvm

import (
	"regexp"
	"strconv"
)

// This file reads the metadata texts that a physical volume keeps when it has left its group. vgreduce
// clears the header of the metadata area and pvremove the label; the texts stay. The first text is at
// the start of the area, 4 KiB into the device (lvm2, lib/format_text/layout.h; seen with lvm2 2.03.16).

// LeftTexts is how many bytes at the start of a device have the first texts of all its groups.
const LeftTexts = 1 << 20

// groupText matches the start of a text after the name of the group.
var groupText = regexp.MustCompile(`\{\nid = "([0-9A-Za-z-]{38})"\nseqno = ([0-9]+)\n`)

// HaveLeft reports whether a device without a label was a physical volume of groups that have
// removed it since. The start of the device has texts of groups, and the report shows each of these
// groups whole and with a later sequence number.
func (r *Report) HaveLeft(start []byte) bool {
	texts := groupText.FindAllSubmatch(start, -1)
	for _, t := range texts {
		seq, err := strconv.ParseUint(string(t[2]), 10, 64)
		if err != nil || !r.wholeAfter(string(t[1]), seq) {
			return false
		}
	}
	return len(texts) > 0
}

// wholeAfter reports whether the report shows all physical volumes of a group, at a later sequence
// number.
func (r *Report) wholeAfter(uuid string, seq uint64) bool {
	for i := range r.Groups {
		if g := &r.Groups[i]; g.UUID == uuid && g.Seq > seq && g.Whole() {
			return true
		}
	}
	return false
}
