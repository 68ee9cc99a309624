package moves

import (
	"slices"
	"strings"
	"time"
)

// While they are in use, volume groups move off a drive that has to leave: one logical volume
// after the other, to a spare drive. follow starts the moves beside every tick.

// GroupMove is a moving group.
type GroupMove struct {
	Under bool   // moveGroup works on it
	Wait  string // what it waits for
	Next  time.Time
	Lost  map[string]string // logical volumes that cannot be moved, and why
	Since time.Time         // when the drive that it leaves was released
	Pace  Pace
	From  string   // the drive that it leaves
	On    []string // all drives of the group
}

// Losses returns what could not be read in a move, as text.
func (t *GroupMove) Losses() string {
	var out []string
	for name, why := range t.Lost {
		out = append(out, name+": "+why)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
