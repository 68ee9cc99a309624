package lvm

import (
	"encoding/binary"
	"hash/crc32"
	"regexp"
	"strconv"
	"strings"
)

// This file reads the metadata texts that a physical volume keeps when it has left its group. vgreduce
// clears the header of the metadata area and pvremove the label; the texts stay. The first text is at
// the start of the area, 4 KiB into the device (lvm2, lib/format_text/layout.h; seen with lvm2 2.03.16).

// LeftTexts is how many bytes at the start of a device have the first texts of all its groups.
const LeftTexts = 1 << 20

// The header of the metadata area: its checksum, a magic number, version, start and size, and a list of the
// texts of groups that ends with an entry of zeros (lvm2, lib/format_text/layout.h, struct mda_header; the checksum starts
// with a number of LVM's own and is not inverted: lib/misc/crc.h). After pvcreate, vgremove, vgreduce and
// pvremove the list is empty (seen with lvm2 2.03.16).
const (
	headerAt, headerSize = 4096, 512
	headerTexts          = 40
	firstText            = headerTexts + 24 // offset, size, checksum and flags
	headerMagic          = " LVM2 x[5A%r0N*>"
	headerSum            = 0xf597a6cf
)

// InNoGroup reports whether the start of a device has the header of a metadata area, and by that is in no group.
func InNoGroup(start []byte) bool {
	if len(start) < headerAt+headerSize {
		return false
	}
	h := start[headerAt : headerAt+headerSize]
	sum := ^crc32.Update(^uint32(headerSum), crc32.IEEETable, h[4:])
	return binary.LittleEndian.Uint32(h) == sum && strings.HasPrefix(string(h[4:]), headerMagic) && strings.Trim(string(h[headerTexts:firstText]), "\x00") == ""
}

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
