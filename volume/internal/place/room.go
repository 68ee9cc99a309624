package place

import (
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// DriveSpace is the space that a drive has left, as known without touching it. A volume
// that is being made counts as made.
type DriveSpace struct {
	Drive *drivebay.Drive
	Free  []Span // ranges without a partition, by start
	Used  bool   // there are partitions, or will be
	Parts int    // number of partitions that there are, or will be
	PV    *PVSpace
}

// PVSpace is the physical volume of a drive, and the group that it is in or will
// be in.
type PVSpace struct {
	UUID    string
	Group   string
	Kind    drivebay.LocationKind // UNKNOWN: nothing has been made in it yet
	Members map[string]string     // drive id -> PV
	Extents uint64                // free ones; in a thin group, those of its pool
}

// Span is a range of a drive in bytes.
type Span struct {
	Start, End uint64
	After      uint64 // of a free range: size of the partition right before it
}

// Size returns the number of bytes in a span.
func (s Span) Size() uint64 { return s.End - s.Start }

// Joins returns 1 if a group of the backing's kind has room. A new group gets all free
// space of its drive, so an unneeded group leaves no room for partitions and whole drives.
func (r *DriveSpace) Joins(b drivebay.Backing) int {
	if r.PV != nil && r.PV.Group != "" && r.PV.Kind == b.Location() && r.PV.Extents > 0 {
		return 1
	}
	return 0
}

// Share returns how much of the drive is left for a backing, in thousandths.
func (r *DriveSpace) Share(b drivebay.Backing) uint64 {
	var left uint64
	switch b {
	case drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror:
		left = r.extents(b.Location()) * lvm.ExtentSize
	default:
		for _, f := range r.Free {
			left += f.Size()
		}
	}
	return left / (r.Drive.Size/1000 + 1)
}
