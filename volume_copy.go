package drivebay

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Move is a volume on its way to another drive, or to another place on its drive. It is on the new one from the moment
// at which Location says so, and not before.
type Move struct {
	From Location `json:"from"`
	To   Location `json:"to"`
	// Name is that of the new partition until it is the volume: nobody takes it for
	// one, whatever is lost meanwhile.
	Name string `json:"name"`
	// Lost is what cannot be read any more; it goes on once that is Accepted.
	Lost     *Lost `json:"lost,omitempty"`
	Accepted bool  `json:"accepted,omitempty"`
	// Room is the growth that the volume moves for; nil: its drive has to leave.
	Room *Room `json:"room,omitempty"`
}

// Room is the growth of a volume for which a partition moves: its own, or that of the
// partition right behind it.
type Room struct {
	Volume string `json:"volume"` // that grows
	Size   uint64 `json:"size"`   // that it is to have, in bytes
}

// Lost is what of a volume could not be read any more when it was copied. What was
// there reads as zeros on the new drive.
type Lost struct {
	At      time.Time `json:"at"`
	Drive   string    `json:"drive"` // that it was lost on
	Bytes   uint64    `json:"bytes"`
	Count   int       `json:"count"`             // of extents
	Extents []Extent  `json:"extents,omitempty"` // the first of them
	// Newer says that Drive, a leg of a mirror, held newer data, which were given up: how
	// much is not known.
	Newer bool `json:"newer,omitempty"`
}

// Extent is a piece of a volume, in bytes from its beginning; of an encrypted one,
// from that of its header.
type Extent struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// MaxLostExtents is how many are kept, one by one.
const MaxLostExtents = 256

// Add takes in one more extent, behind all others.
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

// Covers says whether nothing is in another that is not in this one. Where not all
// extents are kept, nobody knows.
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

// String names the extents for people.
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
