package overview

import (
	"slices"

	"github.com/drivebay/drivebay"
)

// Verdict is whether anything is wrong. A higher one needs more attention: the order is that of Health.
type Verdict uint8

const (
	Fine Verdict = iota
	CannotTell
	Degraded
	AtRisk // data cannot be used, or the failure of one drive loses data
)

func (v Verdict) String() string {
	return [...]string{"FINE", "CANNOT TELL", "DEGRADED", "DATA AT RISK"}[v]
}

// MarshalText returns the word for machines.
func (v Verdict) MarshalText() ([]byte, error) {
	return []byte([...]string{"FINE", "CANNOT_TELL", "DEGRADED", "DATA_AT_RISK"}[v]), nil
}

// Exit statuses for scripts.
const (
	ExitDegraded   = 3
	ExitAtRisk     = 4
	ExitCannotTell = 5
)

// Exit returns the exit status of a command that reports the verdict.
func (v Verdict) Exit() int { return [...]int{0, ExitCannotTell, ExitDegraded, ExitAtRisk}[v] }

// OfHealth returns the verdict on a drive about whose data nothing is known.
func OfHealth(h drivebay.Health) Verdict {
	switch h {
	case drivebay.HealthGood:
		return Fine
	case drivebay.HealthSuspect:
		return Degraded
	case drivebay.HealthBad:
		return AtRisk
	}
	return CannotTell
}

// ofVolume returns the verdict on a volume. Its health allows for its mirror: a volume with a sound leg
// is not BAD.
func ofVolume(v *drivebay.VolumeView) Verdict {
	verdict := OfHealth(v.Health)
	switch v.OperationalStatus {
	case drivebay.Missing, drivebay.Inoperative:
		return AtRisk
	case drivebay.OperationalUnknown:
		verdict = max(verdict, CannotTell)
	}
	switch {
	case v.Condition.Severity() >= drivebay.SeverityInaccessible:
		return AtRisk
	case slices.ContainsFunc(v.Condition, func(f drivebay.VolumeFinding) bool { return !slices.Contains(notKnown, f.Reason) }):
		return max(verdict, Degraded)
	case v.Condition.Abnormal():
		return max(verdict, CannotTell)
	}
	return verdict
}

// notKnown are the reasons of a volume's condition that report no fault, but that one may be hidden.
var notKnown = []string{"HealthUnknown", "StatusUnknown", "LogicalVolumeUnknown"}

// ofDrive returns the verdict on a drive without its volumes. known: its volumes are judged as well.
func ofDrive(d *drivebay.Drive, known bool) Verdict {
	switch {
	case d.Status == drivebay.StatusOffline && d.Removable && d.Claim == nil && !d.System:
		return Fine // a USB stick that was pulled
	case d.Status == drivebay.StatusOffline:
		return Degraded
	case d.Health == drivebay.HealthBad && !holdsOthers(d, known):
		return Degraded
	case d.Copy != "" || d.Usage == drivebay.UsageFailed, d.Unusable() != "": // its health does not show it, nor does a volume if it has none
		return max(OfHealth(d.Health), Degraded)
	case d.Status == drivebay.StatusUnknown:
		return max(OfHealth(d.Health), CannotTell)
	}
	return OfHealth(d.Health)
}

// holdsOthers reports whether a drive may hold data beside the volumes that are known.
func holdsOthers(d *drivebay.Drive, known bool) bool {
	switch d.Content.Kind {
	case drivebay.ContentBlank:
		return d.System
	case drivebay.ContentOurs:
		return d.System || !known
	}
	return true
}
