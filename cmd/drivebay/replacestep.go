package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// step is where the replacement of a drive stands: what to say of it, and what is next.
type step struct {
	text     string
	progress *drivebay.Progress // of what is waited for
	verb     drivebay.LeaveVerb // what leads on; "": time does
	ask      bool               // once an operator agrees
	done     bool
	failed   string // why it cannot go on by itself
}

// stepOf reads the step from what the daemon knows.
func stepOf(s *drivebay.Snapshot, d *drivebay.Drive) step {
	var cause string
	var progress *drivebay.Progress
	if d.Leaving != nil {
		cause, progress = d.Leaving.Cause, d.Leaving.Progress
	}
	switch d.Usage {
	case drivebay.UsageInUse:
		return step{text: "it is in use, and is asked to leave", verb: drivebay.LeaveRelease}
	case drivebay.UsageReleasing:
		return step{text: "RELEASING: nothing new comes to it; " + cmp.Or(cause, "what depends on it is being looked for"), progress: progress}
	case drivebay.UsageReleased:
		return step{text: "RELEASED: nothing depends on it", verb: drivebay.LeaveApprove, ask: true}
	case drivebay.UsageRemoving:
		return step{text: "REMOVING: the kernel is to let go of it; if it cannot, pull it as it is: " + s.Where(d)}
	case drivebay.UsageRemoved:
		return removedStep(s, d)
	case drivebay.UsageFailed:
		return step{failed: fmt.Sprintf("%s: `drivebay drive retry %s` tries it again, `drivebay cancel %s` keeps the drive, `drivebay force-remove %s` takes it out with what is on it",
			cmp.Or(cause, "it cannot be led on"), d.ID, d.ID, d.ID)}
	}
	return step{failed: "the daemon does not know yet how it is used"}
}

// removedStep waits for the drive to be pulled and for the one that takes its place.
func removedStep(s *drivebay.Snapshot, d *drivebay.Drive) step {
	i := slices.IndexFunc(s.Drives, func(o drivebay.Drive) bool {
		return o.Succeeds != nil && o.Succeeds.Of == d.ID && (o.Status == drivebay.StatusOnline || !o.Succeeds.Taken.IsZero())
	})
	pull := "SAFE TO PULL: " + s.Where(d) + "; " + s.Light(d)
	switch {
	case i >= 0 && !s.Drives[i].Succeeds.Taken.IsZero():
		return step{text: inherited(&s.Drives[i]), done: true}
	case i >= 0 && s.Drives[i].Succeeds.Against != "":
		return step{text: fmt.Sprintf("drive %s (%s) is in its bay and does not take its place: %s", s.Drives[i].ID, s.Drives[i].Name, s.Drives[i].Succeeds.Against)}
	case i >= 0:
		return step{text: fmt.Sprintf("drive %s (%s) is in its bay and is being looked at", s.Drives[i].ID, s.Drives[i].Name)}
	case d.Slot.Bay == "":
		return step{text: pull + "; the machine does not tell of bays, so no drive can be taken for its successor: `drivebay claim` takes one into use", done: true}
	case d.Status == drivebay.StatusOnline:
		return step{text: "it was taken out, and the machine has it again: nothing is written to it; " + pull}
	}
	return step{text: pull + "; the next drive in that bay takes its place"}
}

// inherited says what the successor has of the drive before it.
func inherited(d *drivebay.Drive) string {
	text := fmt.Sprintf("drive %s (%s), serial %s, took its place", d.ID, d.Name, cmp.Or(d.Serial, "unknown"))
	if d.Claim == nil {
		return text + "; that one was not claimed, so neither is this: `drivebay claim` lets volumes be made on it"
	}
	return fmt.Sprintf("%s: claimed by the %s, %v, %v", text, d.Claim.By, d.Usage, d.Health)
}

// progressText says how far long work is, and when it will be done.
func progressText(p *drivebay.Progress, now time.Time) string {
	if p == nil || p.Total == 0 {
		return ""
	}
	text := fmt.Sprintf(": %s of %s moved, %d %%", render.Binary(p.Done), render.Binary(p.Total), p.Percent())
	if left := p.End.Sub(now).Round(time.Second); !p.End.IsZero() && left > 0 {
		text += fmt.Sprintf(", done in %v", left)
	}
	return text
}

// replacedNow finds the drive that the replacement of a bay or drive is about.
func replacedNow(s *drivebay.Snapshot, what string, now time.Time) (*drivebay.Drive, error) {
	d, err := find(s, what)
	if err == nil {
		return d, nil
	}
	bay, bayErr := findBay(s, what)
	if bayErr != nil {
		return nil, err
	}
	b, ok := s.FindBay(bay)
	if !ok {
		return nil, err
	}
	if out, ok := leaving(s, b); ok { // its replacement is under way
		return out, nil
	}
	in, ok := s.Find(b.Drive)
	switch {
	case !ok:
		return nil, fmt.Errorf("bay %s: %w: it is empty, and no drive that was in it is to be replaced", b.Bay, drivebay.ErrNotFound)
	case in.Succeeds != nil && in.Succeeds.Taken.IsZero():
		d, err = find(s, in.Succeeds.Of)
		return d, err
	case in.Succeeds != nil && now.Sub(in.Succeeds.Taken) < justReplaced:
		return nil, fmt.Errorf("bay %s: %w: drive %s took the place of drive %s at %s; to replace it too, name it by its id", b.Bay, drivebay.ErrRefused,
			in.ID, in.Succeeds.Of, in.Succeeds.Taken.UTC().Format(time.RFC3339))
	}
	return in, nil
}

// justReplaced is how long a bay is not enough to have its new drive replaced: the call
// may be the one before, made again.
const justReplaced = 24 * time.Hour

// leaving finds the drive that is on its way out of a bay, or was taken out of it last.
func leaving(s *drivebay.Snapshot, b *drivebay.Bay) (last *drivebay.Drive, ok bool) {
	for i := range s.Drives {
		d := &s.Drives[i]
		taken := slices.ContainsFunc(s.Drives, func(o drivebay.Drive) bool {
			return o.Succeeds != nil && o.Succeeds.Of == d.ID && !o.Succeeds.Taken.IsZero()
		})
		if d.Leaving == nil || taken || d.Slot.Bay != b.Bay || d.Slot.Enclosure != b.Enclosure {
			continue
		}
		if last == nil || d.Leaving.Since.After(last.Leaving.Since) {
			last = d
		}
	}
	return last, last != nil
}
