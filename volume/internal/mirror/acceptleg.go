package mirror

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// AcceptLeg makes a mirror continue with the leg that is there, after an operator accepted the loss.
func (e *Mirrors) AcceptLeg(ctx context.Context, id string) error {
	part, err := e.partlyCopied(ctx, id)
	if err != nil {
		return fmt.Errorf("accept loss of volume %s: %w", id, err)
	}
	s, x := e.Drives.Snapshot(), e.Groups.LVMNow()
	r, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		v := &r.Volume
		m := v.Mirror
		unknown := len(v.Location.Drives) < ledger.DrivesPerGroup(v.Location.Kind) // the drive that is given up
		if m != nil && m.Accepted && DriveHere(s, m.Current) || !unknown && (m == nil || m.Current == "" && m.Doubt == "" || m.Current != "" && DriveHere(s, m.Current) && m.Doubt == "") {
			return fmt.Errorf("%w: no data loss is awaiting approval", drivebay.ErrInvalid)
		}
		var here, away []string
		for _, d := range withLeg(v.Location, s, x) {
			if DriveHere(s, d) && e.Groups.HasPart(v, d) {
				here = append(here, d)
			} else {
				away = append(away, d)
			}
		}
		switch {
		case len(here) != 1:
			return fmt.Errorf("%w: %d of its drives are present: leave the drive to keep in its bay and pull the other one", drivebay.ErrInvalid, len(here))
		case slices.Contains(part, here[0]):
			return fmt.Errorf("%w: its leg on drive %s was never complete: put the drive with the other one back", drivebay.ErrRefused, here[0])
		}
		lost := otherDrive
		if m != nil && slices.Contains(away, m.Current) {
			lost = m.Current
		} else if len(away) == 1 {
			lost = away[0]
		}
		v.Lost = &drivebay.Lost{At: e.Machine.Now(), Drive: lost, Newer: true}
		v.Mirror = &drivebay.Mirror{Current: here[0], Accepted: true}
		return nil
	})
	if err != nil {
		return fmt.Errorf("accept loss of volume %s: %w", id, err)
	}
	e.Ledger.Note(drivebay.EventVolumeDataLoss, &r.Volume, "an operator accepts the loss of "+r.Volume.Lost.String())
	return nil
}

// withLeg returns the drives of a mirror that may have a leg of it: not those on which LVM reports none
// while the group moves. What LVM does not report then proves nothing.
func withLeg(l drivebay.Location, s *drivebay.Snapshot, x *partitions.LVMIndex) []string {
	if !ledger.IsMoving(l) {
		return l.Drives
	}
	g := x.Group(l.VG)
	if g == nil {
		return nil
	}
	under, third := g.PhysicalVolumesOf(l.LV), l.Drives[ledger.DrivesPerGroup(l.Kind)]
	return slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool {
		if !DriveHere(s, id) || x.Unread[id] != "" || x.PVs[id] == "" {
			return false
		}
		pv, _ := x.Report.On(x.PVs[id])
		return pv == nil && id == third || pv != nil && !slices.Contains(under, pv.UUID)
	})
}

// partlyCopied returns the drives whose legs say that they never had all data: they were still being
// made when the other one went.
func (e *Mirrors) partlyCopied(ctx context.Context, id string) ([]string, error) {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return nil, err
	}
	l := rec.Volume.Location
	r, err := e.Groups.ReportOf(ctx, l)
	if err != nil {
		return nil, err
	}
	legs := e.mirrorLegs(l, r.Group(l.VG), r)
	e.readSuperblocks(ctx, l, r, legs)
	var out []string
	for _, leg := range legs {
		if !leg.whole() {
			out = append(out, leg.drive)
		}
	}
	return out, nil
}
