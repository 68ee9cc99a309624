package drivebay

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Move is the move of a volume to another drive, or to another place on its drive. The
// volume is at the new place as soon as its Location names it, and not before.
type Move struct {
	From Location `json:"from"`
	To   Location `json:"to"`
	// Name is the name of the new partition during the move: under it, the partition is
	// not adopted as a volume, also after a loss of the records.
	Name string `json:"name"`
	// Lost is the data that cannot be read; the move continues once it is Accepted.
	Lost     *Lost `json:"lost,omitempty"`
	Accepted bool  `json:"accepted,omitempty"`
	// Growth is the growth for which the volume moves; nil: its drive has to leave.
	Growth *Growth `json:"room,omitempty"`
	// OldName is the name of the partition at From, if it is not the name of the volume.
	OldName string `json:"oldName,omitempty"`
}

// LeftCopy is a partition with an old or unfinished copy of a volume.
type LeftCopy struct {
	Location Location `json:"location"`
	Name     string   `json:"name"` // of the partition
	// Unwiped says that wiping the copy failed while its drive was online: the drive can leave. It is
	// tried again while the drive is GOOD, and when the volume is deleted.
	Unwiped bool `json:"unwiped,omitempty"`
}

// Growth is the growth of a volume for which a partition moves: its own, or the one right
// behind it.
type Growth struct {
	Volume string `json:"volume"` // id of the volume that grows
	Size   uint64 `json:"size"`   // its new size in bytes
}

// Lost is the data of a volume that could not be read when it was copied. The copy has
// zeros there.
type Lost struct {
	At      time.Time `json:"at"`
	Drive   string    `json:"drive"` // id of the drive that could not read it
	Bytes   uint64    `json:"bytes"`
	Count   int       `json:"count"`             // number of extents
	Extents []Extent  `json:"extents,omitempty"` // the first MaxLostExtents of them
	// Newer is true if Drive, a leg of a mirror, held newer data that an operator gave up;
	// how much is not known.
	Newer bool `json:"newer,omitempty"`
}

// Extent is a range of a volume, in bytes from its start; of an encrypted volume, from
// the start of its LUKS header.
type Extent struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// MaxLostExtents is how many lost extents are kept one by one.
const MaxLostExtents = 256

// Add records one more extent. It has to be behind all others.
func (l *Lost) Add(x Extent) {
	l.Bytes += x.Length
	if n := len(l.Extents); n > 0 && n == l.Count && l.Extents[n-1].Offset+l.Extents[n-1].Length == x.Offset {
		l.Extents[n-1].Length += x.Length
		return
	}
	if l.Count++; len(l.Extents) < MaxLostExtents {
		l.Extents = append(l.Extents, x)
	}
}

// Covers reports whether every extent of other is part of one of l. It returns false if
// other did not keep all of its extents.
func (l *Lost) Covers(other *Lost) bool {
	if l == nil || other.Count > len(other.Extents) {
		return false
	}
	return !slices.ContainsFunc(other.Extents, func(x Extent) bool {
		return !slices.ContainsFunc(l.Extents, func(y Extent) bool {
			return y.Offset <= x.Offset && x.Offset+x.Length <= y.Offset+y.Length
		})
	})
}

const toldExtents = 8

// String describes the lost data for people.
func (l *Lost) String() string {
	if l.Newer {
		return "all that was written while the mirror was served by drive " + l.Drive + " alone"
	}
	var all []string
	for _, x := range l.Extents[:min(len(l.Extents), toldExtents)] {
		all = append(all, fmt.Sprintf("%d+%d", x.Offset, x.Length))
	}
	text := fmt.Sprintf("%d bytes at (offset+length) %s", l.Bytes, strings.Join(all, ", "))
	if more := l.Count - len(all); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
