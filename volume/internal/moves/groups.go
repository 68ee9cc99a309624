package moves

import (
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/backoff"
)

// While they are in use, volume groups move off a drive that has to leave: one logical volume
// after the other, to a spare drive. follow starts the moves beside every tick.

// GroupMove is a moving group.
type GroupMove struct {
	Under bool   // moveGroup works on it
	Wait  string // what it waits for

	Failed  int       // attempts in a row that ended with an error
	Blocked string    // the error of the last of them, if the finding of a volume is to say it
	Next    time.Time // the next attempt
	Seen    string    // the drives and records when they last changed
	ended   time.Time // the last attempt

	Lost  map[string]string // logical volumes that cannot be moved, and why
	Since time.Time         // when the drive that it leaves was released
	Pace  Pace
	From  string   // the drive that it leaves
	On    []string // all drives of the group
}

// groupAgain is the wait after a failed attempt to move a group.
var groupAgain = backoff.Backoff{First: 10 * time.Second, Most: 5 * time.Minute}

// blockedAfter is the number of failed attempts in a row from which on a finding of the volumes says what
// blocks the move.
const blockedAfter = 3

// Attempt is the outcome of an attempt to move a group.
type Attempt struct {
	Wait    string // what the move waits for
	Failed  bool   // with an error
	Passes  bool   // an error that passes by itself
	NoSpace bool   // no drive has room for the group: the drive that it leaves says so
	Stepped bool   // at least one step was done, and the error is not the one of the attempt before
}

// Ended records the end of an attempt.
func (t *GroupMove) Ended(a Attempt, now time.Time) {
	t.Under, t.Wait, t.Blocked, t.ended = false, a.Wait, "", now
	switch {
	case !a.Failed, a.Passes:
		t.Failed = 0
	case a.Stepped:
		t.Failed = 1
	default:
		t.Failed++
	}
	if t.Failed > 0 && !a.NoSpace {
		t.Blocked = a.Wait
	}
	t.Next = now.Add(groupAgain.Wait(max(t.Failed, 1)))
}

// Changed tells the move which drives and records there are. After a change, the wait is the shortest
// again.
func (t *GroupMove) Changed(seen string) {
	if seen == t.Seen {
		return
	}
	t.Seen, t.Failed = seen, 0
	if soon := t.ended.Add(groupAgain.Wait(1)); soon.Before(t.Next) {
		t.Next = soon
	}
}

// BlockedBy returns why a move has failed again and again; "" if it has not.
func (t *GroupMove) BlockedBy() string {
	if t == nil || t.Failed < blockedAfter {
		return ""
	}
	return t.Blocked
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
