package render

import (
	"cmp"
	"fmt"

	"github.com/drivebay/drivebay"
)

// step is what drivebay does about an object, what it waits for, and the next command.
type step struct{ does, waits, next string }

// text draws it as the first lines of an explanation.
func (n step) text(s Style) string {
	var p pairs
	p.add("now", Clean(n.does))
	p.add("waits for", Clean(n.waits))
	p.add("next", Clean(n.next))
	return p.String("") + "\n"
}

// nowOfDrive reads it from the state of a drive. The advice of a finding is for a drive
// that stays in use, and is left out for one that leaves.
func nowOfDrive(d *drivebay.Drive, s Style) step {
	id := d.ID
	cause, moved := "", ""
	if d.Leaving != nil {
		cause = d.Leaving.Cause
		if p := d.Leaving.Progress; p != nil {
			moved = "; " + s.progress(p)
		}
	}
	switch d.Usage {
	case drivebay.UsageReleasing:
		return step{"what is on the drive moves to other drives, and nothing new is placed on it" + moved, cmp.Or(cause, "a look at what depends on it"),
			fmt.Sprintf("`drivebay replace %s` follows it; `drivebay cancel %s` keeps the drive", id, id)}
	case drivebay.UsageReleased:
		return step{"nothing depends on the drive any more", "an operator who agrees that it is taken out", fmt.Sprintf("`drivebay replace %s`; `drivebay cancel %s` keeps the drive", id, id)}
	case drivebay.UsageRemoving:
		return step{"the kernel is told to let go of the drive", "the kernel", fmt.Sprintf("`drivebay replace %s` follows it", id)}
	case drivebay.UsageRemoved:
		if d.Status == drivebay.StatusOnline {
			return step{"the drive was taken out and is back: nothing is written to it", "an operator", fmt.Sprintf("pull it, or `drivebay accept %s` uses it again", id)}
		}
		return step{"the drive was taken out", "the next drive in its bay", fmt.Sprintf("`drivebay replace %s` leads it in; `drivebay forget %s` if none follows", id, id)}
	case drivebay.UsageFailed:
		return step{"the drive was to leave and cannot", cmp.Or(cause, "an operator"),
			fmt.Sprintf("`drivebay drive retry %s` tries again; `drivebay cancel %s` keeps the drive; `drivebay force-remove %s` takes it out with what is on it", id, id, id)}
	}
	return nowInUse(d)
}

func nowInUse(d *drivebay.Drive) step {
	id := d.ID
	switch {
	case d.Status == drivebay.StatusUnknown && d.IdentityIssue != "":
		return step{"nothing is written to the drives that it may be", "one of them to be taken out", "`drivebay drives` shows them"}
	case d.Status == drivebay.StatusUnknown:
		return step{"the drives are being listed", "a complete listing", "`drivebay refresh`"}
	case d.Status == drivebay.StatusOffline && d.Claim == nil:
		return step{"the record of the drive is kept", "the drive to come back", fmt.Sprintf("`drivebay forget %s` if it does not", id)}
	case d.Status == drivebay.StatusOffline:
		return step{"the record of the drive and of its volumes is kept", "the drive to come back", fmt.Sprintf("put it back into its bay; if it is gone for good, `drivebay replace %s`", id)}
	case d.IdentityIssue != "":
		return step{"the drive is watched, and nothing new is placed on it: its identity is not certain", "", fmt.Sprintf("`drivebay drive show %s` says which name is missing or used twice", id)}
	case d.Claim == nil && len(d.Refusals()) > 0:
		return step{"the drive is watched, and nothing is written to it: " + d.Refusals()[0], "", ""}
	case d.Claim == nil:
		return step{"the drive is watched, and nothing is written to it: it is not claimed", "", fmt.Sprintf("`drivebay claim %s` lets volumes be made on it", id)}
	case d.Health == drivebay.HealthBad:
		return step{"the drive is watched, and nothing new is placed on it", "", fmt.Sprintf("`drivebay replace %s`", id)}
	case d.Health == drivebay.HealthSuspect:
		return step{"the drive is watched, and nothing new is placed on it", "", fmt.Sprintf("`drivebay selftest %s long`; `drivebay replace %s` if it fails", id, id)}
	case d.Health != drivebay.HealthGood:
		return step{"the drive is watched, and nothing new is placed on it", "an answer about its health", "`drivebay refresh` asks again"}
	case len(d.Refusals()) > 0:
		return step{"the drive is watched, and nothing new is placed on it: " + d.Refusals()[0], "", ""}
	case d.Cordoned:
		return step{"the drive is watched, and nothing new is placed on it: it is cordoned", "", fmt.Sprintf("`drivebay uncordon %s` lets new data onto it", id)}
	}
	return step{"the drive is watched, and volumes may be made on it", "", ""}
}

// nowOfVolume reads it from the state of a volume. The next step for each finding is in
// its message.
func nowOfVolume(v *drivebay.VolumeView) step {
	var n step
	switch {
	case v.Work != "":
		n = step{v.Work, "the work to end", "`drivebay volumes --watch` follows it"}
	case v.CSIStatus == drivebay.CSIFailed && v.Failure != nil:
		n = step{"the last call failed", "", fmt.Sprintf("`drivebay volume retry %s`; `drivebay volume clear %s` lets the failure be", v.ID, v.ID)}
	case len(v.Publications) > 0:
		n = step{does: "the volume is mounted and watched"}
	default:
		n = step{does: "the volume is watched and not mounted"}
	}
	if v.Usage == drivebay.VolumeReleasing && v.Work == "" {
		n = step{"the volume is to leave its drive", "its turn to move", fmt.Sprintf("`drivebay volume release %s` gives it up instead", v.ID)}
	}
	if n.next == "" && v.Condition.Abnormal() {
		n.next = fmt.Sprintf("`drivebay heal %s --dry-run` says what can be repaired", v.ID)
	}
	return n
}
