package condition

import "github.com/drivebay/drivebay"

// leg is one drive of a volume.
type leg struct {
	id    string
	drive *drivebay.Drive // nil: not among the drives of the facts
}

func legsOf(f *drivebay.Facts) []leg {
	legs := make([]leg, len(f.Volume.Location.Drives))
	for i, id := range f.Volume.Location.Drives {
		legs[i].id = id
		for j := range f.Drives {
			if f.Drives[j].ID == id {
				legs[i].drive = &f.Drives[j]
				break
			}
		}
	}
	return legs
}

// missing reports whether the drive is proved to be gone: a complete listing of the
// machine lacks it.
func (l leg) missing(complete bool) bool {
	if l.drive == nil {
		return complete
	}
	return l.drive.Status == drivebay.StatusOffline
}

// health returns the health of the drive; at best UNKNOWN if it is not surely there.
func (l leg) health() drivebay.Health {
	switch {
	case l.drive == nil:
		return drivebay.HealthUnknown
	case l.drive.Status != drivebay.StatusOnline:
		return l.drive.Health.Worse(drivebay.HealthUnknown)
	}
	return l.drive.Health
}

// givenUp reports whether the kernel has stopped sending requests to the drive.
func (l leg) givenUp() bool {
	if l.drive == nil || l.drive.Kernel == nil {
		return false
	}
	return l.drive.Kernel.GivenUp()
}

// inSync returns false if a mirror is known not to have the same data on every leg.
func inSync(f *drivebay.Facts) bool {
	return f.LV == nil || (f.LV.SyncPercent == nil || *f.LV.SyncPercent >= 100) && !f.LV.RefreshNeeded
}
