package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// A partition without free space behind it can still grow if an unused volume can move: the volume
// itself, to a place with enough room, or the volume right behind it. The move is the one of a volume
// that leaves its drive (copyaway.go); it may stay on one drive.

// RoomPlan names the volume that moves so that a partition can grow.
type RoomPlan struct {
	Moves *drivebay.VolumeRecord
	To    place.Site
	Size  uint64 // of the moving volume at its new place
}

// PlanRoom chooses the volume that moves so that v can have a size. The error says why none can move;
// it wraps ErrPending where the cause is temporary.
func (s PlacementView) PlanRoom(v *drivebay.Volume, size uint64) (RoomPlan, error) {
	rec := s.volume(v.ID)
	if rec == nil || v.Location.Kind != drivebay.LocationPartition {
		return RoomPlan{}, fmt.Errorf("it has all of drive %s", strings.Join(v.Location.Drives, ", "))
	}
	itself, alone := s.planMove(rec, size)
	if alone == nil {
		return itself, nil
	}
	behind, beside := s.planNeighbor(v, size)
	if beside == nil {
		return behind, nil
	}
	return RoomPlan{}, fmt.Errorf("%w, and %w", alone, beside)
}

// planMove plans to move a volume to a place where it can have a size, preferably on its own drive.
func (s PlacementView) planMove(r *drivebay.VolumeRecord, size uint64) (RoomPlan, error) {
	if err := s.MayMove(r); err != nil {
		return RoomPlan{}, fmt.Errorf("volume %s %w", r.Volume.Name, err)
	}
	sites := slices.DeleteFunc(s.sitesToMove(&r.Volume), func(at place.Site) bool { return at.Most < size })
	own := func(at place.Site) int { return Btoi(at.Rooms[0].Drive.ID == r.Volume.Location.Drives[0]) }
	slices.SortStableFunc(sites, func(a, b place.Site) int { return cmp.Compare(own(b), own(a)) })
	if len(sites) == 0 {
		return RoomPlan{}, fmt.Errorf("no drive that volume %s may move to has %s free in one piece", r.Volume.Name, partitions.SizeText(size))
	}
	return RoomPlan{r, sites[0], size}, nil
}

// planNeighbor plans to move the volume right behind v.
func (s PlacementView) planNeighbor(v *drivebay.Volume, size uint64) (RoomPlan, error) {
	drive := v.Location.Drives[0]
	d, known := steps.DriveOf(s.Drives, drive)
	parts := s.taken(drive, s.Index.Parts[drive])
	p, there := partitions.Instanced(parts, ledger.PartitionName(v.ID), v.Location.Partition)
	if !known || !there {
		return RoomPlan{}, fmt.Errorf("its partition is not listed: %w", drivebay.ErrPending)
	}
	i := slices.IndexFunc(parts, func(q partitions.Part) bool { return q.Start > p.Start })
	if i < 0 {
		return RoomPlan{}, errors.New("its drive ends behind it")
	}
	next := parts[i]
	r := s.volume(ledger.IDOfPartition(next.Title))
	if r == nil || !partitions.SameGUID(next.GUID, r.Volume.Location.Partition) {
		return s.behindNoVolume(next)
	}
	others := slices.Delete(slices.Clone(parts), i, i+1)
	if have := s.partitionGrowsTo(v, d, others); have < size {
		return RoomPlan{}, fmt.Errorf("it could have %s without volume %s behind it", partitions.SizeText(have), r.Volume.Name)
	}
	s.records = append(slices.Clone(s.records), &drivebay.VolumeRecord{Volume: r.Volume, Work: &drivebay.Work{Op: drivebay.WorkMove,
		Move: &drivebay.Move{From: r.Volume.Location, Growth: &drivebay.Growth{Volume: v.ID, Size: size}}}})
	plan, err := s.planMove(r, (next.Size+partitions.MiB-1)/partitions.MiB*partitions.MiB-place.OverheadOf(&r.Volume))
	if err != nil {
		return plan, fmt.Errorf("behind it %w", err)
	}
	return plan, nil
}

// behindNoVolume returns the error for a partition behind a volume that is no volume itself. A move
// leaves such a partition for a while.
func (s PlacementView) behindNoVolume(p partitions.Part) (RoomPlan, error) {
	if slices.ContainsFunc(s.records, func(r *drivebay.VolumeRecord) bool {
		m := partitions.MoveOf(r)
		return m != nil && p.GUID != "" && (partitions.SameGUID(m.From.Partition, p.GUID) || partitions.SameGUID(m.To.Partition, p.GUID))
	}) {
		return RoomPlan{}, fmt.Errorf("a volume moves behind it: %w", drivebay.ErrPending)
	}
	return RoomPlan{}, fmt.Errorf("partition %d (%s) lies behind it", p.Number, p.Title)
}

// MayMove returns why a volume cannot move to make room.
func (s PlacementView) MayMove(r *drivebay.VolumeRecord) error {
	v := &r.Volume
	failed := v.CSIStatus == drivebay.CSIFailed
	switch at := UsedAt(v); {
	case at != "":
		return fmt.Errorf("is in use (%s)", at)
	case v.Location.Kind != drivebay.LocationPartition:
		return errors.New("is no partition that can move")
	case failed && (r.Work != nil || v.Undecided() != ""), r.Work == nil && !Copyable(v):
		return fmt.Errorf("is %v", v.CSIStatus)
	case r.Work != nil:
		return fmt.Errorf("is at work (%s): %w", r.Work.Op, drivebay.ErrPending)
	case v.Usage != drivebay.VolumeInUse:
		return errors.New("is to leave its drive")
	case s.unmoved[v.ID] != "":
		return fmt.Errorf("could not be moved: %s", s.unmoved[v.ID])
	}
	return nil
}

func (s PlacementView) volume(id string) *drivebay.VolumeRecord {
	return RecordIn(s.volumes, id)
}

// RecordIn finds a record in a list by id.
func RecordIn(all []*drivebay.VolumeRecord, id string) *drivebay.VolumeRecord {
	i, ok := slices.BinarySearchFunc(all, id, func(r *drivebay.VolumeRecord, id string) int { return strings.Compare(r.Volume.ID, id) })
	if !ok {
		return nil
	}
	return all[i]
}

// GrowingBeside returns the volume on the same drive for which the volume of r makes room, and the
// size it is to have, or nil.
func GrowingBeside(all []*drivebay.VolumeRecord, r *drivebay.VolumeRecord) (*drivebay.VolumeRecord, *drivebay.Growth) {
	m := partitions.MoveOf(r)
	if m == nil || m.Growth == nil || m.Growth.Volume == r.Volume.ID {
		return nil, nil
	}
	g := RecordIn(all, m.Growth.Volume)
	if g == nil || g.Volume.Location.Kind != drivebay.LocationPartition || !slices.Equal(g.Volume.Location.Drives, m.From.Drives) {
		return nil, nil
	}
	return g, m.Growth
}

// keptFree returns the ranges of a drive that are kept free for volumes that grow after others have
// moved.
func (s PlacementView) keptFree(drive string, parts []partitions.Part) (out []place.Span) {
	for _, r := range s.records {
		g, room := GrowingBeside(s.volumes, r)
		if room == nil || g.Volume.ID == s.grows || g.Volume.Location.Drives[0] != drive {
			continue
		}
		if p, ok := partitions.Instanced(parts, ledger.PartitionName(g.Volume.ID), g.Volume.Location.Partition); ok {
			out = append(out, place.Span{Start: p.Start, End: p.Start + room.Size + place.OverheadOf(&g.Volume)})
		}
	}
	return out
}
