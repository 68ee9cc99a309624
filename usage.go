package drivebay

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// UsageEvent is what moves a drive through its working life.
type UsageEvent uint8

const (
	UsageSeen     UsageEvent = iota + 1 // first seen, or accepted as a successor
	UsageRelease                        // its health or an operator asks it to leave
	UsageEmptied                        // nothing depends on it any more
	UsageApprove                        // an operator lets it be taken out
	UsageTakenOut                       // it is offline and safe to pull
	UsageFail                           // the step under way failed; the cause is in the event
	UsageRetry                          // an operator asks for another try
	UsageKeep                           // an operator keeps it after all
	UsageForce                          // an operator has it taken out with what still depends on it
)

var usageEventNames = names[UsageEvent]{"usage event", []string{"none", "seen", "release", "emptied", "approve", "taken out", "fail", "retry", "keep", "force"}}

func (e UsageEvent) String() string { return usageEventNames.text(e) }

// usageMoves is the whole life of a drive here. FAILED is no sink: retry and
// keep lead out of it.
var usageMoves = map[Usage]map[UsageEvent]Usage{
	UsageUnknown:   {UsageSeen: UsageInUse},
	UsageInUse:     {UsageRelease: UsageReleasing},
	UsageReleasing: {UsageEmptied: UsageReleased, UsageFail: UsageFailed, UsageKeep: UsageInUse, UsageForce: UsageRemoving},
	UsageReleased:  {UsageApprove: UsageRemoving, UsageKeep: UsageInUse, UsageForce: UsageRemoving},
	UsageRemoving:  {UsageTakenOut: UsageRemoved, UsageFail: UsageFailed, UsageKeep: UsageInUse},
	UsageRemoved:   {UsageSeen: UsageInUse},
	UsageFailed:    {UsageRetry: UsageReleasing, UsageKeep: UsageInUse, UsageForce: UsageRemoving},
}

// Next is the only way from one usage to another.
func (u Usage) Next(e UsageEvent) (Usage, error) {
	if to, ok := usageMoves[u][e]; ok {
		return to, nil
	}
	return u, fmt.Errorf("drive usage %v: %w: no move on %q", u, ErrInvalid, e)
}

// usageWords say of each usage what it means, and what is waited for in it.
var usageWords = map[Usage]struct{ means, waits string }{
	UsageUnknown:   {"the drive was never listed", "the first listing of the machine"},
	UsageInUse:     {"volumes may be made on it, where it is claimed", "nothing"},
	UsageReleasing: {"it has to leave: nothing new comes to it, what is on it serves on", "its volumes and snapshots, which `drivebay drive show` names, to be moved, released (`drivebay volume release`) or removed"},
	UsageReleased:  {"nothing depends on it", "an operator, who approves that it is taken out"},
	UsageRemoving:  {"the kernel is letting go of it, its bay is lit", "the kernel, which is asked again after a restart; a drive that it cannot let go of is pulled as it is"},
	UsageRemoved:   {"it is out, or back and nobody's: nothing is written to it", "its successor in the bay, which takes over its claim; the drive itself, once it is accepted again"},
	UsageFailed:    {"the step under way failed; the cause is kept with the drive, its fault light is lit", "an operator"},
}

// usageWays say who makes a move, in the order in which they are told.
var usageWays = []struct {
	event UsageEvent
	by    string
}{
	{UsageSeen, "the daemon"},
	{UsageRelease, "`drivebay replace DRIVE`, `drivebay release DRIVE`, or the daemon for its health (`replacement.trigger`)"},
	{UsageEmptied, "the daemon, when the last volume and snapshot is gone"},
	{UsageApprove, "`drivebay replace DRIVE`, `drivebay approve DRIVE --yes`"},
	{UsageTakenOut, "the daemon, when the kernel has the drive no more"},
	{UsageFail, "the daemon"},
	{UsageRetry, "`drivebay drive retry DRIVE`"},
	{UsageKeep, "`drivebay cancel DRIVE`"},
	{UsageForce, "`drivebay force-remove DRIVE --yes`, which loses what is on it"},
}

// UsageMarkdown writes the page about the life of a drive.
func UsageMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# The life of a drive\n\nThis page is written by the program from its own table of moves; change the table, not the page.\n\n" +
		"Every move is an event with its cause: `drivebay events --drive DRIVE`. There is no state without a way out of it.\n\n" +
		"| usage | means | waits for | ways out |\n|---|---|---|---|\n")
	for u := UsageUnknown; u <= UsageFailed; u++ {
		var ways []string
		for _, way := range usageWays {
			by := way.by
			if u == UsageRemoved { // back again, it is nobody's until somebody says so
				by = "`drivebay accept DRIVE`"
			}
			if to, ok := usageMoves[u][way.event]; ok {
				ways = append(ways, fmt.Sprintf("%v: %s", to, by))
			}
		}
		fmt.Fprintf(&b, "| %v | %s | %s | %s |\n", u, usageWords[u].means, usageWords[u].waits, strings.Join(ways, "<br>"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// LeaveVerb is what an operator says of a drive on its way out.
type LeaveVerb string

const (
	LeaveRelease LeaveVerb = "release" // it has to leave
	LeaveApprove LeaveVerb = "approve" // it may be taken out now
	LeaveCancel  LeaveVerb = "cancel"  // it stays after all
	LeaveRetry   LeaveVerb = "retry"   // try again what failed
	LeaveAccept  LeaveVerb = "accept"  // it was taken out, is back, and may be used again
	LeaveForce   LeaveVerb = "force"   // it is taken out with what still depends on it
	LeaveForget  LeaveVerb = "forget"  // it is OFFLINE and is not remembered any more
)

// Leaving is how far a drive is on its way out, and why.
type Leaving struct {
	Since time.Time `json:"since"`           // that it is where it is
	Why   string    `json:"why"`             // it has to leave
	Cause string    `json:"cause,omitempty"` // of a failure, or what is waited for
	// Progress is that of what is being moved off it; nil: nothing is.
	Progress *Progress `json:"progress,omitempty"`
}

// Progress is how far a piece of long work is.
type Progress struct {
	Done  uint64    `json:"done"` // bytes
	Total uint64    `json:"total"`
	End   time.Time `json:"end,omitzero"` // when it will be done at this rate
}

// Percent is how much is done, rounded down.
func (p *Progress) Percent() int {
	if p.Total == 0 {
		return 0
	}
	return int(float64(p.Done) / float64(p.Total) * 100)
}

// Succession is whose bay a new drive was put into, and what has come of it.
type Succession struct {
	Of      string    `json:"of"`                // the drive that was in the bay before
	Against string    `json:"against,omitempty"` // why it does not take that drive's place
	Taken   time.Time `json:"taken,omitzero"`    // since when it has
}
