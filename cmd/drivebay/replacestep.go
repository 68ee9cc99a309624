package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/named"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

// step is the state of a replacement: what to print, and what comes next.
type step struct {
	text     string
	progress *drivebay.Progress // of the work that the step waits for
	verb     drivebay.LeaveVerb // starts the next step; "": it starts by itself
	ask      bool               // verb needs the consent of the operator
	done     bool
	failed   string // why the replacement cannot continue
}

// stepOf returns the step of a drive, from a snapshot of the daemon.
func stepOf(s *drivebay.Snapshot, d *drivebay.Drive) step {
	var cause string
	var progress *drivebay.Progress
	if d.Leaving != nil {
		cause, progress = d.Leaving.Cause, d.Leaving.Progress
	}
	switch d.Usage {
	case drivebay.UsageInUse:
		return step{text: "IN_USE: the drive is being released", verb: drivebay.LeaveRelease}
	case drivebay.UsageReleasing:
		return step{text: "RELEASING: the drive gets no new volumes; " + cmp.Or(cause, "the daemon checks what depends on it"), progress: progress}
	case drivebay.UsageReleased:
		return step{text: "RELEASED: nothing depends on the drive", verb: drivebay.LeaveApprove, ask: true}
	case drivebay.UsageRemoving:
		return step{text: "REMOVING: " + cmp.Or(cause, "the kernel removes the drive; if it cannot, "+overview.PullAnyway(d)+": "+s.Where(d))}
	case drivebay.UsageRemoved:
		return removedStep(s, d)
	case drivebay.UsageFailed:
		return step{failed: fmt.Sprintf("%s: `drivebay drive retry %s` retries the failed step, `drivebay cancel %s` keeps the drive, `drivebay force-remove %s` removes the drive with the data on it",
			cmp.Or(cause, "the removal cannot continue"), d.ID, d.ID, d.ID)}
	}
	return step{failed: "the daemon does not know the usage of the drive yet"}
}

// removedStep returns the step of a drive that was removed: the operator pulls it, then its successor takes its place.
func removedStep(s *drivebay.Snapshot, d *drivebay.Drive) step {
	o := s.Successor(d)
	pull := "SAFE TO PULL: " + s.Where(d) + "; " + s.Light(d)
	switch {
	case o != nil && !o.Succeeds.Taken.IsZero():
		return step{text: inherited(o), done: true}
	case o != nil && o.Succeeds.Against != "":
		return step{text: fmt.Sprintf("drive %s (%s) is in the bay and is not accepted as the successor: %s", o.ID, o.Name, o.Succeeds.Against)}
	case o != nil:
		return step{text: fmt.Sprintf("drive %s (%s) is in the bay and is being checked", o.ID, o.Name)}
	case overview.Holder(d) != "":
		return step{text: "the drive was removed, is back in the machine and in use (" + overview.Holder(d) + "): end that before you pull it: " + s.Where(d)}
	case d.Slot.Bay == "":
		return step{text: pull + "; the machine reports no bays, so no drive can be recognized as the successor: claim the new drive with `drivebay claim DRIVE`", done: true}
	case d.Status == drivebay.StatusOnline:
		return step{text: "the drive was removed and is back in the machine: nothing is written to it; " + pull}
	}
	return step{text: pull + "; the next drive in that bay is the successor"}
}

// inherited describes the successor and its claim.
func inherited(d *drivebay.Drive) string {
	text := fmt.Sprintf("drive %s (%s), serial %s, is the successor", d.ID, d.Name, cmp.Or(d.Serial, "unknown"))
	if d.Claim == nil {
		return text + "; it is not claimed, because the old drive was not claimed: `drivebay claim " + d.ID + "` allows volumes on it"
	}
	return fmt.Sprintf("%s: claimed by the %s, %v, %v", text, d.Claim.By, d.Usage, d.Health)
}

// replacedNow returns the drive to replace, given a bay or the whole name of a drive.
func replacedNow(s *drivebay.Snapshot, what string, now time.Time) (*drivebay.Drive, error) {
	bays := s.FindBays(what)
	if _, by := s.Lookup(named.Device(what)); by > drivebay.MatchBay || len(bays) == 0 {
		return find(s, what, true)
	}
	if len(bays) > 1 {
		_, err := named.Bay(s, what)
		return nil, err
	}
	b := bays[0]
	if out, ok := leaving(s, b); ok { // its replacement is under way
		return out, nil
	}
	in, ok := s.Get(b.Drive)
	switch {
	case !ok:
		return nil, fmt.Errorf("bay %s: %w: the bay is empty, and no drive of this bay is being replaced", b.Bay, drivebay.ErrNotFound)
	case in.Succeeds != nil && in.Succeeds.Taken.IsZero():
		return find(s, in.Succeeds.Of, true)
	case in.Succeeds != nil && now.Sub(in.Succeeds.Taken) < justReplaced:
		return nil, fmt.Errorf("bay %s: %w: drive %s replaced drive %s at %s; to replace the new drive too, give its ID", b.Bay, drivebay.ErrRefused,
			in.ID, in.Succeeds.Of, in.Succeeds.Taken.UTC().Format(time.RFC3339))
	}
	return in, nil
}

// justReplaced is how long a bay does not select its new drive for replacement: the
// command may be a repetition of the last one.
const justReplaced = 24 * time.Hour

// leaving returns the drive that leaves a bay, or that was taken out of it last, as long
// as it has no successor.
func leaving(s *drivebay.Snapshot, b *drivebay.Bay) (last *drivebay.Drive, ok bool) {
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.Leaving == nil || s.Replaced(d) || d.Slot.Bay != b.Bay || d.Slot.Enclosure != b.Enclosure {
			continue
		}
		if last == nil || d.Leaving.Since.After(last.Leaving.Since) {
			last = d
		}
	}
	return last, last != nil
}
