package drivemgr

import "fmt"

// A drive that shrank (a host protected area, a USB bridge or a RAID controller that shows
// less of it, a copy on a smaller drive) may lack the ends of its volumes, and hides where
// its table says that there is one. One that grew lacks nothing.

// measure says of a drive whether its size can be right, by its record and by its
// partition table.
func (t *tracked) measure() {
	d := &t.drive
	t.rec.FullSize = max(t.rec.FullSize, t.rec.Drive.Size, d.Size)
	if d.Serial == "" && d.WWN == "" || d.Removable && t.rec.Claim == nil { // another drive or medium has the id
		t.rec.FullSize = d.Size
	}
	switch {
	case d.Size > 0 && d.Size < t.rec.FullSize:
		d.SizeIssue = fmt.Sprintf("it has %d bytes and had %d", d.Size, t.rec.FullSize)
	case d.Size > 0:
		d.SizeIssue = d.Content.Beyond
	}
}
