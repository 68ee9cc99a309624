package drivebay

import (
	"fmt"
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
)

var usageEventNames = names[UsageEvent]{"usage event", []string{"none", "seen", "release", "emptied", "approve", "taken out", "fail", "retry", "keep"}}

func (e UsageEvent) String() string { return usageEventNames.text(e) }

// usageMoves is the whole life of a drive here. FAILED is no sink: retry and
// keep lead out of it.
var usageMoves = map[Usage]map[UsageEvent]Usage{
	UsageUnknown:   {UsageSeen: UsageInUse},
	UsageInUse:     {UsageRelease: UsageReleasing},
	UsageReleasing: {UsageEmptied: UsageReleased, UsageFail: UsageFailed, UsageKeep: UsageInUse},
	UsageReleased:  {UsageApprove: UsageRemoving, UsageKeep: UsageInUse},
	UsageRemoving:  {UsageTakenOut: UsageRemoved, UsageFail: UsageFailed, UsageKeep: UsageInUse},
	UsageRemoved:   {UsageSeen: UsageInUse},
	UsageFailed:    {UsageRetry: UsageReleasing, UsageKeep: UsageInUse},
}

// Next is the only way from one usage to another.
func (u Usage) Next(e UsageEvent) (Usage, error) {
	if to, ok := usageMoves[u][e]; ok {
		return to, nil
	}
	return u, fmt.Errorf("drive usage %v: %w: no move on %q", u, ErrInvalid, e)
}

// LeaveVerb is what an operator says of a drive on its way out.
type LeaveVerb string

const (
	LeaveRelease LeaveVerb = "release" // it has to leave
	LeaveApprove LeaveVerb = "approve" // it may be taken out now
	LeaveCancel  LeaveVerb = "cancel"  // it stays after all
	LeaveRetry   LeaveVerb = "retry"   // try again what failed
	LeaveAccept  LeaveVerb = "accept"  // it was taken out, is back, and may be used again
)

// Leaving is how far a drive is on its way out, and why.
type Leaving struct {
	Since time.Time `json:"since"`           // that it is where it is
	Why   string    `json:"why"`             // it has to leave
	Cause string    `json:"cause,omitempty"` // of a failure, or what is waited for
}
