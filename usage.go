package drivebay

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// UsageEvent is an event that changes the Usage of a drive.
type UsageEvent uint8

const (
	UsageSeen     UsageEvent = iota + 1 // first seen, or accepted as a successor
	UsageRelease                        // an operator or the health policy wants it removed
	UsageEmptied                        // no volume or snapshot depends on it any more
	UsageApprove                        // an operator approves its removal
	UsageTakenOut                       // it is offline and safe to pull
	UsageFail                           // the current step failed; the cause is in the event
	UsageRetry                          // an operator asks for another try
	UsageKeep                           // an operator keeps it
	UsageForce                          // an operator removes it with all that still depends on it
)

var usageEventNames = names[UsageEvent]{"usage event", []string{"none", "seen", "release", "emptied", "approve", "taken out", "fail", "retry", "keep", "force"}}

func (e UsageEvent) String() string { return usageEventNames.text(e) }

// usageMoves holds every change of Usage. FAILED is not final: retry and keep lead out of it.
var usageMoves = map[Usage]map[UsageEvent]Usage{
	UsageUnknown:   {UsageSeen: UsageInUse},
	UsageInUse:     {UsageRelease: UsageReleasing},
	UsageReleasing: {UsageEmptied: UsageReleased, UsageFail: UsageFailed, UsageKeep: UsageInUse, UsageForce: UsageRemoving},
	UsageReleased:  {UsageApprove: UsageRemoving, UsageKeep: UsageInUse, UsageForce: UsageRemoving},
	UsageRemoving:  {UsageTakenOut: UsageRemoved, UsageFail: UsageFailed, UsageKeep: UsageInUse},
	UsageRemoved:   {UsageSeen: UsageInUse},
	UsageFailed:    {UsageRetry: UsageReleasing, UsageKeep: UsageInUse, UsageForce: UsageRemoving},
}

// Next returns the usage after an event. Usage changes in no other way.
func (u Usage) Next(e UsageEvent) (Usage, error) {
	if to, ok := usageMoves[u][e]; ok {
		return to, nil
	}
	return u, fmt.Errorf("drive usage %v: %w: no move on %q", u, ErrInvalid, e)
}

// usageWords holds what each usage means, and what the drive waits for in it.
var usageWords = map[Usage]struct{ means, waits string }{
	UsageUnknown:   {"the drive was never listed", "the first listing of the machine"},
	UsageInUse:     {"volumes may be made on it, where it is claimed", "nothing"},
	UsageReleasing: {"it has to leave: nothing new comes to it, what is on it serves on", "its volumes and snapshots, which `drivebay drive show` names, to be moved, released (`drivebay volume release`) or removed"},
	UsageReleased:  {"nothing depends on it", "an operator, who approves that it is taken out"},
	UsageRemoving:  {"the kernel is letting go of it, its bay is lit", "the kernel, which is asked again after a restart; a drive that it cannot let go of is pulled as it is"},
	UsageRemoved:   {"it was taken out, or is back and not accepted: nothing is written to it", "its successor in the bay, which takes over its claim; the drive itself, once it is accepted again"},
	UsageFailed:    {"the step under way failed; the cause is kept with the drive, its fault light is lit", "an operator"},
}

// usageWays holds what causes each event, in the order of the page.
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
			if u == UsageRemoved { // a drive that is back is used only after an operator accepts it
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

// LeaveVerb is an operator's command about the removal of a drive.
type LeaveVerb string

const (
	LeaveRelease LeaveVerb = "release" // it has to leave
	LeaveApprove LeaveVerb = "approve" // its removal is approved
	LeaveCancel  LeaveVerb = "cancel"  // it stays in use
	LeaveRetry   LeaveVerb = "retry"   // the failed step is tried again
	LeaveAccept  LeaveVerb = "accept"  // it was removed, is back, and may be used again
	LeaveForce   LeaveVerb = "force"   // it is removed with all that still depends on it
	LeaveForget  LeaveVerb = "forget"  // it is OFFLINE, and its record is deleted
)

// Leaving is why a drive has to leave, and how far its removal is.
type Leaving struct {
	Since time.Time `json:"since"`           // since when it has its present usage
	Why   string    `json:"why"`             // why it has to leave
	Cause string    `json:"cause,omitempty"` // the cause of a failure, or what the drive waits for
	// Progress is that of the volumes being moved off it; nil: none is moved.
	Progress *Progress `json:"progress,omitempty"`
}

// Progress is how much of a long operation is done.
type Progress struct {
	Done  uint64    `json:"done"` // bytes
	Total uint64    `json:"total"`
	End   time.Time `json:"end,omitzero"` // the expected end at the present rate
}

// Percent returns the done part in percent, rounded down.
func (p *Progress) Percent() int {
	if p.Total == 0 {
		return 0
	}
	return int(float64(p.Done) / float64(p.Total) * 100)
}

// Succession names the drive that was in the bay of a new drive before, and says whether
// the new one takes its place.
type Succession struct {
	Of      string    `json:"of"`                // id of the drive that was in the bay before
	Against string    `json:"against,omitempty"` // why the new drive does not take its place
	Taken   time.Time `json:"taken,omitzero"`    // when the new drive took its place
}
