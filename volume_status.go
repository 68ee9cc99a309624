package drivebay

// leg is one drive under a volume, as the facts know it.
type leg struct {
	id    string
	drive *Drive // nil: not among the drives that are known
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

// missing needs proof: a drive that a complete listing of the machine lacks.
func (l leg) missing(complete bool) bool {
	if l.drive == nil {
		return complete
	}
	return l.drive.Status == StatusOffline
}

// health is that of the drive; one that is not surely there is not surely good.
func (l leg) health() Health {
	switch {
	case l.drive == nil:
		return HealthUnknown
	case l.drive.Status != StatusOnline:
		return l.drive.Health.Worse(HealthUnknown)
	}
	return l.drive.Health
}

// givenUp says whether the kernel has stopped talking to the drive: no request
// reaches it any more.
func (l leg) givenUp() bool {
	if l.drive == nil || l.drive.Kernel == nil {
		return false
	}
	return l.drive.Kernel.GivenUp()
}

// inSync is false while a mirror is known not to have the same data on every leg.
func (f *Facts) inSync() bool {
	return f.LV == nil || (f.LV.SyncPercent == nil || *f.LV.SyncPercent >= 100) && !f.LV.RefreshNeeded
}

// VolumeHealthOf is the health that a volume has from its drives. It is that of
// the worst; a mirror in sync is as good as its best leg, but never better than
// SUSPECT, or than its worst leg, while a leg is worse than that: it is degraded
// and not lost. A leg that is gone is no copy.
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

// OperationalStatusOf says how a volume serves. What the mounts look like from
// here is left out: a volume serves, or not, whoever looks.
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
	case f.Gone || l.lost(l.missing): // a drive that hangs or fails is there
		return Missing
	}
	l.Volume.OperationalStatus = Operative // not from what it was the last time
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
