package ledger

import (
	"github.com/drivebay/drivebay"
)

// DrivesPerGroup returns how many drives a group of a kind has when it does not move.
func DrivesPerGroup(k drivebay.LocationKind) int {
	if k == drivebay.LocationMirror {
		return 2
	}
	return 1
}

// IsMoving reports whether the group of a location is moving.
func IsMoving(l drivebay.Location) bool { return l.OnLVM() && len(l.Drives) > DrivesPerGroup(l.Kind) }
