package page

import (
	"cmp"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

// Step is a step of a replacement.
type Step struct {
	Title   string `json:"title"`
	State   string `json:"state"` // done, now, next, failed
	Text    string `json:"text,omitempty"`
	Percent *int   `json:"percent,omitempty"`
}

// Action is what an operator may do about a drive now.
type Action struct {
	Do      string `json:"do"`
	On      bool   `json:"on,omitempty"`
	Label   string `json:"label"`
	Effect  string `json:"effect"`            // what happens then
	Primary bool   `json:"primary,omitempty"` // it is the next step of the replacement
}

// titles are the steps of a replacement in their order.
var titles = []string{"Move the volumes off the drive", "Approve the removal", "The kernel removes the drive", "Pull the drive and insert the new one", "The new drive is in use"}

// stepsOf returns the steps of the replacement of a drive, or none if it is not replaced.
func stepsOf(s *drivebay.Snapshot, d *drivebay.Drive) []Step {
	if d.Usage == drivebay.UsageInUse || d.Usage == drivebay.UsageUnknown {
		return nil
	}
	does := overview.OfDrive(d)
	cause := ""
	if d.Leaving != nil {
		cause = d.Leaving.Cause
	}
	at, text, failed := 0, "", false
	switch d.Usage {
	case drivebay.UsageReleasing:
		text = cmp.Or(cause, does.Does)
	case drivebay.UsageReleased:
		at, text = 1, "Nothing depends on the drive. It waits for your approval."
	case drivebay.UsageRemoving:
		at, text = 2, "If the kernel cannot remove it, "+overview.PullAnyway(d)+": "+s.Where(d)
	case drivebay.UsageFailed:
		failed, text = true, cmp.Or(cause, "the removal cannot continue")
	case drivebay.UsageRemoved:
		at, text = removed(s, d)
	}
	out := make([]Step, len(titles))
	for i, title := range titles {
		out[i] = Step{Title: title, State: "next"}
		if i < at {
			out[i].State = "done"
		}
	}
	if at == len(titles) {
		out[at-1].Text = text
		return out
	}
	out[at].State, out[at].Text = "now", text
	if failed {
		out[at].State = "failed"
	}
	if at == 0 && d.Leaving != nil {
		out[0].Percent = percent(d.Leaving.Progress)
	}
	return out
}

// removed returns the step of a drive that was removed, and its text.
func removed(s *drivebay.Snapshot, d *drivebay.Drive) (int, string) {
	const pull, inUse = 3, 4
	o := s.Successor(d)
	switch {
	case o != nil && !o.Succeeds.Taken.IsZero():
		text := "Drive " + o.Name + ", serial " + cmp.Or(o.Serial, "unknown") + ", is the successor: " + o.Usage.String() + ", " + o.Health.String()
		if o.Claim == nil {
			text += ". It is not claimed: `drivebay claim " + o.ID + "` allows volumes on it"
		}
		return inUse + 1, text
	case o != nil && o.Succeeds.Against != "":
		return inUse, "Drive " + o.Name + " is not accepted as the successor: " + o.Succeeds.Against
	case o != nil:
		return inUse, "Drive " + o.Name + " is in the bay and is being checked."
	case overview.Holder(d) != "":
		return pull, "The drive is back in the machine and in use (" + overview.Holder(d) + "): end that before you pull it: " + s.Where(d)
	case d.Slot.Bay == "":
		return pull, "SAFE TO PULL: " + s.Where(d) + ". The machine reports no bays, so no drive can be recognized as the successor: claim the new drive with `drivebay claim DRIVE`."
	case d.Status == drivebay.StatusOnline:
		return pull, "The drive is back in the machine: nothing is written to it. Pull it: " + s.Where(d)
	}
	return pull, "SAFE TO PULL: " + s.Where(d) + "; " + s.Light(d) + ". The next drive in that bay is the successor."
}

// actionsOf returns what an operator may do about a drive now. What destroys data is left to the command line.
func actionsOf(s *drivebay.Snapshot, d *drivebay.Drive) (out []Action) {
	add := func(do string, on, primary bool, label, effect string) {
		out = append(out, Action{Do: do, On: on, Label: label, Effect: effect, Primary: primary})
	}
	keep := func() { add("cancel", false, false, "Keep the drive", "The removal ends. The drive stays in use.") }
	switch d.Usage {
	case drivebay.UsageReleased:
		add("approve", false, true, "Approve the removal", "The kernel removes the drive, and the light of its bay is switched on.")
		keep()
	case drivebay.UsageReleasing:
		keep()
	case drivebay.UsageFailed:
		add("retry", false, true, "Try again", "The step that failed is tried again.")
		keep()
	case drivebay.UsageRemoved:
		if d.Status == drivebay.StatusOnline {
			add("accept", false, false, "Use the drive again", "The drive that was removed is used again.")
		}
	case drivebay.UsageInUse:
		if !d.System && d.Claim != nil {
			add("release", false, d.Health == drivebay.HealthBad, "Replace the drive",
				"The volumes on the drive move to other drives, and no new volumes are placed on it. Nothing is removed before you approve it.")
		}
		if d.Cordoned {
			add("cordon", false, false, "Allow new volumes", "New volumes may be placed on the drive again.")
		} else {
			add("cordon", true, false, "Cordon", "No new volumes are placed on the drive. Those on it stay.")
		}
	}
	if d.Slot.Locate == "" {
		return out
	}
	if s.BayOf(d).Lit {
		add("locate", false, false, "Light off", "The light of the bay is switched off.")
	} else {
		add("locate", true, false, "Light on", "The light of the bay is switched on.")
	}
	return out
}
