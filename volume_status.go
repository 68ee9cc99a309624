package drivebay

// leg is one drive of a volume.
type leg struct {
	id    string
	drive *Drive // nil: not among the drives of the facts
}

func (f *Facts) legs() []leg {
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
	return l.drive.Status == StatusOffline
}

// health returns the health of the drive; at best UNKNOWN if it is not surely there.
func (l leg) health() Health {
	switch {
	case l.drive == nil:
		return HealthUnknown
	case l.drive.Status != StatusOnline:
		return l.drive.Health.Worse(HealthUnknown)
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
func (f *Facts) inSync() bool {
	return f.LV == nil || (f.LV.SyncPercent == nil || *f.LV.SyncPercent >= 100) && !f.LV.RefreshNeeded
}

// VolumeHealthOf returns the health of a volume by its drives: that of the worst drive. In
// a mirror in sync, a BAD leg counts as SUSPECT while the best leg is not BAD: the volume
// is degraded and not lost. A leg that is gone counts as BAD.
func VolumeHealthOf(f Facts) Health {
	if f.Drives == nil {
		return f.Volume.Health
	}
	legs := f.legs()
	if len(legs) == 0 {
		return HealthUnknown
	}
	best, worst := HealthBad, HealthGood
	for _, l := range legs {
		h := l.health()
		if f.Volume.Location.Mirrored() && l.missing(f.Complete) {
			h = HealthBad
		}
		if best.Worse(h) == best {
			best = h
		}
		worst = worst.Worse(h)
	}
	if !f.Volume.Location.Mirrored() || !f.inSync() {
		return worst
	}
	if worst == HealthBad {
		worst = HealthSuspect
	}
	return best.Worse(worst)
}

// OperationalStatusOf returns the operational status of a volume. It ignores the mounts,
// because the status has to be the same for every caller.
func OperationalStatusOf(f Facts) OperationalStatus {
	f.Mount = nil
	l := newLook(f)
	switch doing := l.doing(); {
	case doing == CSIRemoved:
		return OperationalRemoved
	case doing == CSIRemoving:
		return OperationalRemoving
	case doing == CSICreating:
		return OperationalStaging
	case f.Gone || l.lost(l.missing): // a drive that hangs or fails is not missing
		return Missing
	}
	l.Volume.OperationalStatus = Operative // the previous status must not count
	for _, found := range l.findings() {
		if found.Severity == SeverityInaccessible {
			return Inoperative
		}
	}
	switch v := &f.Volume; {
	case f.Drives == nil || len(l.on) == 0 || v.CSIStatus == CSIUnknown || v.Usage == VolumeUsageUnknown:
		return OperationalUnknown
	case l.unplaced() || l.lost(l.unreadable()) || f.LV != nil && f.LV.Unknown != "":
		return OperationalUnknown
	case v.CSIStatus == CSIResizing || v.CSIStatus == CSIResized || v.Usage == VolumeReleasing:
		return Maintenance
	}
	return Operative
}
