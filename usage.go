package drivebay

import (
	"fmt"
	"time"
)

// UsageEvent is an event that changes the Usage of a drive.
type UsageEvent uint8

const (
	UsageSeen     UsageEvent = iota + 1 // first listed, or accepted again
	UsageRelease                        // an operator or the health policy requests its removal
	UsageEmptied                        // no volume or snapshot depends on it
	UsageApprove                        // an operator approves its removal
	UsageTakenOut                       // it is offline and safe to pull
	UsageFail                           // the current step failed; the cause is in the event
	UsageRetry                          // an operator requests another attempt
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
	return u, fmt.Errorf("drive usage %v: %w: no transition for %q", u, ErrInvalid, e)
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
