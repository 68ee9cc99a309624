package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// LostForGood reports whether a volume can neither be wiped nor come back: its drives were
// taken out for good. While two drives cannot be distinguished, one of them
// may be the drive of the volume under another id.
func LostForGood(s *drivebay.Snapshot, l drivebay.Location) bool {
	conflict := slices.ContainsFunc(s.Drives, func(d drivebay.Drive) bool { return d.IdentityIssue != "" && d.Status == drivebay.StatusOnline })
	return s.Seq > 0 && groups.AllTakenOut(s, l) && !conflict
}

// A mirror whose other drive is lost for good is removed with the leg that is here. LVM (lvm2
// 2.03.16, seen) refuses to change a group that lacks a physical volume, but it removes the
// group's volumes, and then the missing physical volume, on which nothing lies any more.

// aloneStep is recorded with a drive before a mirror is removed without its other legs. The
// removal then ends so, whatever drive returns meanwhile: only the leg on this drive was wiped.
const aloneStep = "alone on "

// SurvivingMirror returns a mirror as it is removed without its other drive, which was taken
// out for good, or whose loss an operator has accepted. Decided means that
// aloneStep is recorded.
func (e *Mirrors) SurvivingMirror(r *drivebay.VolumeRecord) (alone drivebay.Volume, decided, is bool) {
	alone = r.Volume
	if alone.Location.Kind != drivebay.LocationMirror {
		return alone, false, false
	}
	on := ""
	if r.Work != nil {
		for _, step := range r.Work.Made {
			if drive, ok := strings.CutPrefix(step, aloneStep); ok {
				on, decided = drive, true
			}
		}
	}
	if on == "" {
		on = e.survivingDrive(&alone)
	}
	if on != "" {
		alone.Location.Drives, alone.Mirror = []string{on}, &drivebay.Mirror{Current: on, Accepted: true}
	}
	return alone, decided, on != ""
}

// survivingDrive returns the drive of a mirror whose others are all lost for good; or "".
func (e *Mirrors) survivingDrive(v *drivebay.Volume) string {
	s, drives := e.Drives.Snapshot(), v.Location.Drives
	if len(drives) < ledger.DrivesPerGroup(v.Location.Kind) { // the other drive is not known
		if len(drives) == 1 && v.Mirror != nil && v.Mirror.Accepted && v.Mirror.Current == drives[0] {
			return drives[0]
		}
		return ""
	}
	here := slices.DeleteFunc(slices.Clone(drives), func(id string) bool { return !DriveHere(s, id) && LostForGood(s, Of(id)) })
	if len(here) == 1 && DriveHere(s, here[0]) {
		return here[0]
	}
	return ""
}

// LostLeg reports whether a drive of a mirror is lost for good and another one is here: the
// leg is created again elsewhere.
func LostLeg(s *drivebay.Snapshot, l drivebay.Location) bool {
	return l.Kind == drivebay.LocationMirror && slices.ContainsFunc(l.Drives, func(id string) bool { return LostForGood(s, Of(id)) }) &&
		slices.ContainsFunc(l.Drives, func(id string) bool { return DriveHere(s, id) })
}

// Of returns a location with one drive.
func Of(drive string) drivebay.Location { return drivebay.Location{Drives: []string{drive}} }

// AsRemoved returns a volume as it is to be removed. When the other legs of a mirror do not
// count any more, it first sends an event and records that.
func (e *Mirrors) AsRemoved(r *drivebay.VolumeRecord) (drivebay.Volume, error) {
	alone, decided, is := e.SurvivingMirror(r)
	v := &r.Volume
	switch {
	case !is && v.Location.Kind == drivebay.LocationMirror && len(v.Location.Drives) == 1:
		return alone, fmt.Errorf("volume %s: %w: it is a mirror that was found with one of its two drives: put the other one in, or run `drivebay volume accept-loss %s` if that is lost for good", v.ID, drivebay.ErrUnavailable, v.ID)
	case !is || decided:
		return alone, nil
	}
	others := slices.DeleteFunc(slices.Clone(v.Location.Drives), func(id string) bool { return id == alone.Location.Drives[0] })
	if len(others) == 0 {
		others = []string{""} // the record does not know it
	}
	for _, drive := range others {
		e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive, Volume: v.ID,
			Cause: fmt.Sprintf("volume %q is removed without its leg on %s, which is not wiped: wipe or destroy that drive before you give it away", v.Name, cmp.Or(drive, "a drive that no record names"))})
	}
	_, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		r.Volume.Mirror = alone.Mirror
		if r.Work != nil {
			r.Work.Made = append(r.Work.Made, aloneStep+alone.Location.Drives[0])
		}
		return nil
	})
	return alone, err
}
