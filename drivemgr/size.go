package drivemgr

import "fmt"

// A drive that shrank (a host protected area, a USB bridge or a RAID controller that shows
// less of it, a copy on a smaller drive) may lack the ends of its volumes: its partition
// table may name partitions in the hidden part. One that grew lacks nothing.

// measure sets SizeIssue when the size of a drive cannot be right by its record or its
// partition table.
func (t *tracked) measure() {
	d := &t.drive
	t.rec.FullSize = max(t.rec.FullSize, t.rec.Drive.Size, d.Size)
	if d.Serial == "" && d.WWN == "" || d.Removable && t.rec.Claim == nil { // the id is not bound to one drive or medium
		t.rec.FullSize = d.Size
	}
	switch {
	case d.Size > 0 && d.Size < t.rec.FullSize:
		d.SizeIssue = fmt.Sprintf("it has %d bytes and had %d", d.Size, t.rec.FullSize)
	case d.Size > 0:
		d.SizeIssue = d.Content.Beyond
	}
}
