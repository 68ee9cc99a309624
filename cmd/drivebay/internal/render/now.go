package render

import (
	"cmp"
	"fmt"

	"github.com/drivebay/drivebay"
)

// step is what drivebay does about an object, what it waits for, and the next command.
type step struct{ does, waits, next string }

// text returns the first lines of an explanation.
func (n step) text(s Style) string {
	var p pairs
	p.add("now", Clean(n.does))
	p.add("waits for", Clean(n.waits))
	p.add("next", Clean(n.next))
	return p.String("") + "\n"
}

// nowOfDrive returns the step from the state of a drive. The advice of a finding is for
// a drive that stays in use; advised drops it for one that leaves.
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
		return step{"the volumes on the drive move to other drives, and no new volumes are placed on it" + moved, cmp.Or(cause, "the check of what depends on the drive"),
			fmt.Sprintf("`drivebay replace %s` shows the progress; `drivebay cancel %s` keeps the drive", id, id)}
	case drivebay.UsageReleased:
		return step{"nothing depends on the drive", "an operator who approves the removal", fmt.Sprintf("`drivebay replace %s`; `drivebay cancel %s` keeps the drive", id, id)}
	case drivebay.UsageRemoving:
		return step{"the kernel removes the drive", "the kernel", fmt.Sprintf("`drivebay replace %s` shows the progress", id)}
	case drivebay.UsageRemoved:
		if d.Status == drivebay.StatusOnline {
			return step{"the drive was removed and is back: nothing is written to it", "an operator", fmt.Sprintf("pull it, or `drivebay accept %s` uses it again", id)}
		}
		return step{"the drive was removed", "the successor in its bay", fmt.Sprintf("`drivebay replace %s` waits for the successor; without one, use `drivebay forget %s`", id, id)}
	case drivebay.UsageFailed:
		return step{"the removal of the drive failed", cmp.Or(cause, "an operator"),
			fmt.Sprintf("`drivebay drive retry %s` retries; `drivebay cancel %s` keeps the drive; `drivebay force-remove %s` removes the drive with the data on it", id, id, id)}
	}
	return nowInUse(d)
}

func nowInUse(d *drivebay.Drive) step {
	id := d.ID
	switch {
	case d.Status == drivebay.StatusUnknown && d.IdentityIssue != "":
		return step{"nothing is written to the drives with this identity", "the removal of one of them", "`drivebay drives` lists them"}
	case d.Status == drivebay.StatusUnknown:
		return step{"the drives are being listed", "a complete listing", "`drivebay refresh`"}
	case d.Status == drivebay.StatusOffline && d.Claim == nil:
		return step{"the record of the drive is kept", "the drive to come back", fmt.Sprintf("`drivebay forget %s` if it does not", id)}
	case d.Status == drivebay.StatusOffline:
		return step{"the record of the drive and of its volumes is kept", "the drive to come back", fmt.Sprintf("put it back into its bay; if it is gone permanently, `drivebay replace %s`", id)}
	case d.IdentityIssue != "":
		return step{"the drive is monitored, and no new volumes are placed on it: its identity is not certain", "", fmt.Sprintf("`drivebay drive show %s` shows which name is missing or used twice", id)}
	case d.Claim == nil && len(d.Refusals()) > 0:
		return step{"the drive is monitored, and nothing is written to it: " + d.Refusals()[0], "", ""}
	case d.Claim == nil:
		return step{"the drive is monitored, and nothing is written to it: it is not claimed", "", fmt.Sprintf("`drivebay claim %s` allows volumes on it", id)}
	case d.Health == drivebay.HealthBad:
		return step{"the drive is monitored, and no new volumes are placed on it", "", fmt.Sprintf("`drivebay replace %s`", id)}
	case d.Health == drivebay.HealthSuspect:
		return step{"the drive is monitored, and no new volumes are placed on it", "", fmt.Sprintf("`drivebay selftest %s long`; `drivebay replace %s` if it fails", id, id)}
	case d.Health != drivebay.HealthGood:
		return step{"the drive is monitored, and no new volumes are placed on it", "its health pages", "`drivebay refresh` reads them again"}
	case len(d.Refusals()) > 0:
		return step{"the drive is monitored, and no new volumes are placed on it: " + d.Refusals()[0], "", ""}
	case d.Cordoned:
		return step{"the drive is monitored, and no new volumes are placed on it: it is cordoned", "", fmt.Sprintf("`drivebay uncordon %s` allows new volumes on it", id)}
	}
	return step{"the drive is monitored, and volumes can be created on it", "", ""}
}

// nowOfVolume returns the step from the state of a volume. The message of each finding
// holds its next step.
func nowOfVolume(v *drivebay.VolumeView) step {
	var n step
	switch {
	case v.Work != "":
		n = step{v.Work, "the work to end", "`drivebay volumes --watch` shows the progress"}
	case v.CSIStatus == drivebay.CSIFailed && v.Failure != nil:
		n = step{"the last call failed", "", fmt.Sprintf("`drivebay volume retry %s`; `drivebay volume clear %s` clears the failure", v.ID, v.ID)}
	case len(v.Publications) > 0:
		n = step{does: "the volume is mounted and monitored"}
	default:
		n = step{does: "the volume is not mounted, and is monitored"}
	}
	if v.Usage == drivebay.VolumeReleasing && v.Work == "" {
		n = step{"the volume has to move off its drive", "the moves before it", fmt.Sprintf("`drivebay volume release %s` gives up its data instead", v.ID)}
	}
	if n.next == "" && v.Condition.Abnormal() {
		n.next = fmt.Sprintf("`drivebay heal %s --dry-run` shows what can be repaired", v.ID)
	}
	return n
}
