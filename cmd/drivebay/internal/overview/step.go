// Package overview says what drivebay does about a drive or a volume, what is wrong with a machine, what
// is being done about it, and what waits for a person. Apart from Ask, its functions are pure.
package overview

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// Step is what drivebay does about an object, what it waits for, and the next command.
type Step struct{ Does, Waits, Next string }

// OfDrive returns the step from the state of a drive. The advice of a finding is for
// a drive that stays in use; advised drops it for one that leaves.
func OfDrive(d *drivebay.Drive) Step {
	id, cause := d.ID, ""
	if d.Leaving != nil {
		cause = d.Leaving.Cause
	}
	switch d.Usage {
	case drivebay.UsageReleasing:
		return Step{"the volumes on the drive move to other drives, and no new volumes are placed on it", cmp.Or(cause, "the check of what depends on the drive"),
			fmt.Sprintf("`drivebay replace %s` shows the progress; `drivebay cancel %s` keeps the drive", id, id)}
	case drivebay.UsageReleased:
		return Step{"nothing depends on the drive", "an operator who approves the removal", fmt.Sprintf("`drivebay replace %s`; `drivebay cancel %s` keeps the drive", id, id)}
	case drivebay.UsageRemoving:
		return Step{"the kernel removes the drive", cmp.Or(cause, "the kernel"), fmt.Sprintf("`drivebay replace %s` shows the progress; `drivebay cancel %s` keeps the drive", id, id)}
	case drivebay.UsageRemoved:
		if Holder(d) != "" {
			return Step{"the drive was removed and is back: nothing is written to it", "the end of its use: " + Holder(d), fmt.Sprintf("then pull it, or `drivebay accept %s` uses it again", id)}
		}
		if d.Status == drivebay.StatusOnline {
			return Step{"the drive was removed and is back: nothing is written to it", "an operator", fmt.Sprintf("pull it, or `drivebay accept %s` uses it again", id)}
		}
		return Step{"the drive was removed", "the successor in its bay", fmt.Sprintf("`drivebay replace %s` waits for the successor; without one, use `drivebay forget %s`", id, id)}
	case drivebay.UsageFailed:
		return Step{"the removal of the drive failed", cmp.Or(cause, "an operator"),
			fmt.Sprintf("`drivebay drive retry %s` retries; `drivebay cancel %s` keeps the drive; `drivebay force-remove %s` removes the drive with the data on it", id, id, id)}
	}
	return inUse(d)
}

func inUse(d *drivebay.Drive) Step {
	id := d.ID
	switch {
	case d.Status == drivebay.StatusUnknown && d.IdentityIssue != "":
		return Step{"nothing is written to the drives with this identity", "the removal of one of them", "`drivebay drives` lists them"}
	case d.Status == drivebay.StatusUnknown:
		return Step{"the drives are being listed", "a complete listing", "`drivebay refresh`"}
	case d.Status == drivebay.StatusOffline && d.Claim == nil:
		return Step{"the record of the drive is kept", "the drive to come back", fmt.Sprintf("`drivebay forget %s` if it does not", id)}
	case d.Status == drivebay.StatusOffline:
		return Step{"the record of the drive and of its volumes is kept", "the drive to come back", fmt.Sprintf("put it back into its bay; if it is gone permanently, `drivebay replace %s`", id)}
	case d.IdentityIssue != "":
		return Step{"the drive is monitored, and no new volumes are placed on it: its identity is not certain", "", fmt.Sprintf("`drivebay drive show %s` shows which name is missing or used twice", id)}
	case d.Claim == nil && len(d.Refusals()) > 0:
		return Step{"the drive is monitored, and nothing is written to it: " + d.Refusals()[0], "", ""}
	case d.Claim == nil:
		return Step{"the drive is monitored, and nothing is written to it: it is not claimed", "", fmt.Sprintf("`drivebay claim %s` allows volumes on it", id)}
	case d.Health == drivebay.HealthBad:
		return Step{"the drive is monitored, and no new volumes are placed on it", "", fmt.Sprintf("`drivebay replace %s`", id)}
	case d.Health == drivebay.HealthSuspect:
		return Step{"the drive is monitored, and no new volumes are placed on it", "", fmt.Sprintf("`drivebay selftest %s long`; `drivebay replace %s` if it fails", id, id)}
	case d.Health != drivebay.HealthGood:
		return Step{"the drive is monitored, and no new volumes are placed on it", "its health pages", "`drivebay refresh` reads them again"}
	case len(d.Refusals()) > 0:
		return Step{"the drive is monitored, and no new volumes are placed on it: " + d.Refusals()[0], "", ""}
	case d.Cordoned:
		return Step{"the drive is monitored, and no new volumes are placed on it: it is cordoned", "", fmt.Sprintf("`drivebay uncordon %s` allows new volumes on it", id)}
	}
	return Step{"the drive is monitored, and volumes can be created on it", "", ""}
}

// OfVolume returns the step from the state of a volume. The message of each finding
// holds its next step.
func OfVolume(v *drivebay.VolumeView) Step {
	var n Step
	switch {
	case v.Work != "":
		n = Step{v.Work, "the work to end", "`drivebay volumes --watch` shows the progress"}
	case v.CSIStatus == drivebay.CSIFailed && v.Failure != nil:
		n = Step{"the last call failed", "", fmt.Sprintf("`drivebay volume retry %s`; `drivebay volume clear %s` clears the failure", v.ID, v.ID)}
	case len(v.Publications) > 0:
		n = Step{Does: "the volume is mounted and monitored"}
	default:
		n = Step{Does: "the volume is not mounted, and is monitored"}
	}
	if v.Usage == drivebay.VolumeReleasing && v.Work == "" {
		n = Step{"the volume has to move off its drive", "the moves before it", fmt.Sprintf("`drivebay volume release %s` gives up its data instead", v.ID)}
	}
	if n.Next == "" && v.Condition.Abnormal() {
		n.Next = fmt.Sprintf("`drivebay heal %s --dry-run` shows what can be repaired", v.ID)
	}
	return n
}

// Holder returns what uses a drive that has to be pulled, "" if nothing does: a partition that drivebay made and that nothing uses is
// what is left of a volume.
func Holder(d *drivebay.Drive) string {
	for _, u := range d.Uses {
		if d.Status == drivebay.StatusOnline && !(u.Ours && u.Kind == "partition") {
			return strings.TrimSpace(u.Kind + " " + u.Device + " " + u.What)
		}
	}
	return ""
}

// PullAnyway returns what an operator does with a drive that the kernel cannot remove: it can be in use again, or still if it is removed by force.
func PullAnyway(d *drivebay.Drive) string {
	if h := Holder(d); h != "" {
		return "end its use (" + h + ") before you pull it, unless its data are given up"
	}
	return "pull the drive anyway"
}
