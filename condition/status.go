package condition

import "github.com/drivebay/drivebay"

// HealthOf returns the health of a volume by its drives: that of the worst drive. In
// a mirror in sync, a BAD leg counts as SUSPECT while the best leg is not BAD: the volume
// is degraded and not lost. A leg that is gone counts as BAD.
func HealthOf(f drivebay.Facts) drivebay.Health {
	if f.Drives == nil {
		return f.Volume.Health
	}
	legs := legsOf(&f)
	if len(legs) == 0 {
		return drivebay.HealthUnknown
	}
	best, worst := drivebay.HealthBad, drivebay.HealthGood
	for _, l := range legs {
		h := l.health()
		if f.Volume.Location.Mirrored() && l.missing(f.Complete) {
			h = drivebay.HealthBad
		}
		if best.Worse(h) == best {
			best = h
		}
		worst = worst.Worse(h)
	}
	if !f.Volume.Location.Mirrored() || !inSync(&f) {
		return worst
	}
	if worst == drivebay.HealthBad {
		worst = drivebay.HealthSuspect
	}
	return best.Worse(worst)
}

// OperationalStatusOf returns the operational status of a volume. It ignores the mounts,
// because the status has to be the same for every caller.
func OperationalStatusOf(f drivebay.Facts) drivebay.OperationalStatus {
	f.Mount = nil
	l := newLook(f)
	switch doing := l.doing(); {
	case doing == drivebay.CSIRemoved:
		return drivebay.OperationalRemoved
	case doing == drivebay.CSIRemoving:
		return drivebay.OperationalRemoving
	case doing == drivebay.CSICreating:
		return drivebay.OperationalStaging
	case (f.Gone || l.lost(l.missing)) && !l.remote(): // a drive that hangs or fails is not missing
		return drivebay.Missing
	}
	l.Volume.OperationalStatus = drivebay.Operative // the previous status must not count
	for _, found := range l.findings() {
		if found.Severity == drivebay.SeverityInaccessible {
			return drivebay.Inoperative
		}
	}
	switch v := &f.Volume; {
	case f.Drives == nil || len(l.on) == 0 || v.CSIStatus == drivebay.CSIUnknown || v.Usage == drivebay.VolumeUsageUnknown:
		return drivebay.OperationalUnknown
	case l.unplaced() || l.lost(l.unreadable()) || f.LV != nil && f.LV.Unknown != "":
		return drivebay.OperationalUnknown
	case v.CSIStatus == drivebay.CSIResizing || v.CSIStatus == drivebay.CSIResized || v.Usage == drivebay.VolumeReleasing:
		return drivebay.Maintenance
	}
	return drivebay.Operative
}
