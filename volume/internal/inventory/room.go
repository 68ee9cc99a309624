package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

// SizeOfWork returns the size of a volume's piece of the drive after the current work.
func SizeOfWork(r *drivebay.VolumeRecord) uint64 {
	return r.Work.Size + place.OverheadOf(&r.Volume)
}

// PlacementView is the state from which places are chosen.
type PlacementView struct {
	Drives  *drivebay.Snapshot
	Index   partitions.Index
	volumes []*drivebay.VolumeRecord
	records []*drivebay.VolumeRecord // those with work under way
	snaps   []*drivebay.SnapshotRecord
	Moving  map[string]string // drive -> the group that moves to it or from it
	uses    map[string][]recordedUse
	layouts map[string]string // how table and kernel differ, by drive
	tables  map[string][]gpt.Partition
	grows   string            // id of the volume that may use the space kept free for it
	unmoved map[string]string // why a volume could not be moved a short time ago, by id
	// blankPVs are partitions for a physical volume that read back blank, by drive.
	blankPVs map[string]partitions.Part
}

// Rooms returns the room of each drive that a new volume of a class may be put on,
// best first: with a group that it can join, least worn, least filled, then by id.
func (s PlacementView) Rooms(c drivebay.Class) []place.DriveSpace {
	var out []place.DriveSpace
	for i := range s.Drives.Drives {
		d := &s.Drives.Drives[i]
		if !mayTake(d, c) {
			continue
		}
		if r, known := s.roomOf(d); known {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b place.DriveSpace) int {
		return cmp.Or(cmp.Compare(b.Joins(c.Backing), a.Joins(c.Backing)), cmp.Compare(wornBy(a.Drive), wornBy(b.Drive)), cmp.Compare(b.Share(c.Backing), a.Share(c.Backing)), cmp.Compare(a.Drive.ID, b.Drive.ID))
	})
	return out
}

// DriveRooms returns the room of each drive whose space is known, by id.
func (s PlacementView) DriveRooms() map[string]drivebay.DriveRoom {
	out := map[string]drivebay.DriveRoom{}
	for i := range s.Drives.Drives {
		d := &s.Drives.Drives[i]
		r, known := s.roomOf(d)
		if !known {
			continue
		}
		room := drivebay.DriveRoom{Backings: r.Backings()}
		if r.PV != nil {
			room.Group, room.Kind, room.Members = r.PV.Group, r.PV.Kind, slices.Sorted(maps.Keys(r.PV.Members))
		}
		out[d.ID] = room
	}
	return out
}

// roomOf returns the room of a drive; known is false unless everything on the drive is known and of drivebay.
func (s PlacementView) roomOf(d *drivebay.Drive) (r place.DriveSpace, known bool) {
	parts, listed := s.Index.Parts[d.ID]
	foreign := slices.ContainsFunc(parts, func(p partitions.Part) bool { return !strings.HasPrefix(p.Title, content.OursPrefix) })
	if !listed || foreign || s.doubt(d, parts) != nil {
		return r, false
	}
	r = s.room(d, s.taken(d.ID, parts))
	r.Free = place.ForParts(r.Free, gpt.MaxPartitions-r.Parts) // a growth needs no entry of the table
	return r, true
}

// mayTake reports whether a drive accepts new volumes of a class.
func mayTake(d *drivebay.Drive, c drivebay.Class) bool {
	return d.TakesVolumes() && (c.Drives == drivebay.TypeUnknown || c.Drives == d.Type)
}

func wornBy(d *drivebay.Drive) int {
	if d.Wear == nil {
		return 0
	}
	return d.Wear.PercentUsed
}

// taken adds to the kernel's partitions of a drive those that only its table has, as it was last read, and
// that a record names: a partition comes to the table before the kernel, and leaves the kernel before
// the table. Its range is free in neither moment.
func (s PlacementView) taken(drive string, parts []partitions.Part) []partitions.Part {
	out := slices.Clone(parts)
	for _, p := range s.tables[drive] {
		if i := slices.IndexFunc(out, func(k partitions.Part) bool { return k.Number == p.Number && k.Start == p.Start }); i >= 0 {
			out[i].Size = max(out[i].Size, p.Size)
		} else if s.named(drive, p) { // else it was begun and its record is lost: the next creation may remove it
			out = append(out, partitions.Part{Device: mounttable.Device{Size: p.Size}, Number: p.Number, Start: p.Start, Title: p.Name, GUID: p.GUID, Kind: p.Type})
		}
	}
	slices.SortStableFunc(out, func(a, b partitions.Part) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// named reports whether the record of a volume names a partition of a drive.
func (s PlacementView) named(drive string, p gpt.Partition) bool {
	return slices.ContainsFunc(s.volumes, func(r *drivebay.VolumeRecord) bool {
		return slices.ContainsFunc(instances.LocationsOf(r), func(l drivebay.Location) bool {
			return slices.Contains(l.Drives, drive) && (l.OnLVM() && p.Type == ledger.TypePV || strings.EqualFold(l.Partition, p.GUID))
		})
	})
}

// room computes what is left of one drive on which these partitions are taken.
func (s PlacementView) room(d *drivebay.Drive, parts []partitions.Part) place.DriveSpace {
	r := place.DriveSpace{Drive: d, Used: len(parts) > 0, Parts: len(parts)}
	spans := make([]place.Span, 0, len(parts))
	for _, p := range parts {
		end := p.Start + p.Size
		if rec := s.growing(p); rec != nil {
			end = max(end, p.Start+SizeOfWork(rec))
		}
		spans = append(spans, place.Span{Start: p.Start, End: end})
	}
	r.Free = place.FreeSpans(d.Size, d.LogicalBlock, append(spans, s.keptFree(d.ID, parts)...))
	if p, ok := partitions.PVOn(parts); ok {
		r.PV = s.physical(d, p)
	}
	for _, rec := range s.records {
		l, name := rec.Volume.Location, ledger.PartitionName(rec.Volume.ID)
		if m := partitions.MoveOf(rec); m != nil && !Moved(rec) {
			l, name = m.To, m.Name
		} else if rec.Work == nil || rec.Work.Op != drivebay.WorkCreate {
			continue
		}
		if !slices.Contains(l.Drives, d.ID) {
			continue
		}
		if !l.OnLVM() {
			if _, there := partitions.Instanced(parts, name, l.Partition); !there {
				r.Used, r.Parts = true, r.Parts+1
				r.Free, _ = place.Take(r.Free, SizeOfWork(rec))
			}
			continue
		}
		s.promise(&r, rec)
	}
	for _, snap := range s.snaps { // they are made in existing groups
		l := snap.Snapshot.Location
		if r.PV != nil && r.PV.Group == l.VG && snap.Work != nil && snap.Work.Op == drivebay.WorkCreate && s.Index.LVM.Lacks(l) {
			r.PV.Extents -= min(r.PV.Extents, place.ExtentsOf(snap.Snapshot.Size+place.Overhead(snap.Snapshot.LUKSUUID)))
		}
	}
	if group, is := s.Moving[d.ID]; is {
		if r.PV == nil { // the physical volume will be made
			r.Free, _ = place.LargestOut(r.Free)
			r.Parts++
		}
		r.PV, r.Used = &place.PVSpace{Group: group}, true
	}
	return r
}

// growing returns the record of the volume that a partition belongs to while it grows; nil for the volume of GrowsTo.
func (s PlacementView) growing(p partitions.Part) *drivebay.VolumeRecord {
	for _, rec := range s.records {
		if rec.Work != nil && rec.Work.Op == drivebay.WorkExpand && rec.Volume.ID != s.grows && ledger.PartitionName(rec.Volume.ID) == p.Title && partitions.SameGUID(p.GUID, rec.Volume.Location.Partition) {
			return rec
		}
	}
	return nil
}

// physical returns the room of the physical volume that LVM reports on a drive. A
// partition for one without a volume group is free only if it reads back blank, or if
// the records announce that a group is being made or removed there. Everything else that
// LVM does not list is unknown, not absent.
func (s PlacementView) physical(d *drivebay.Drive, p partitions.Part) *place.PVSpace {
	out := &place.PVSpace{}
	x := s.Index.LVM
	if x == nil || x.PVs[d.ID] == "" { // LVM has not been asked since the partition was made
		if s.announced(d.ID, "") {
			out.Extents = place.PVExtents(p.Size)
		}
		return out
	}
	pv, g := x.Report.On(x.PVs[d.ID])
	if pv != nil {
		out.UUID = pv.UUID
	}
	if g == nil {
		if s.announced(d.ID, out.UUID) || pv == nil && s.blankPVs[d.ID].Device == p.Device {
			out.Extents = place.PVExtents(p.Size)
		}
		return out
	}
	out.Group, out.Kind, out.Members = g.Name, place.GroupKind(g), s.Index.LVM.Members(g)
	out.Extents = pv.Free / lvm.ExtentSize
	if out.Kind == drivebay.LocationThin {
		out.Extents = place.PoolExtents(pv.Free / lvm.ExtentSize)
		if pool := g.LV(place.PoolName); pool != nil {
			out.Extents = place.Unpromised(g, pool)
			out.Extents -= min(out.Extents, s.growingInPool(g.Name))
		}
	}
	if !pv.Allocatable || pv.Missing || len(g.Missing()) > 0 || x.Group(g.Name) == nil {
		out.Extents = 0
	}
	return out
}

// announced reports whether a volume that is being made needs a physical volume on a
// drive (with this UUID, if LVM reports one), or whether the last volume on it is being
// removed and its data is wiped.
func (s PlacementView) announced(drive, uuid string) bool {
	return slices.ContainsFunc(s.records, func(r *drivebay.VolumeRecord) bool {
		if partitions.MustBeThere(r.Work) || !r.Volume.Location.OnLVM() || !slices.Contains(r.Volume.Location.Drives, drive) {
			return false
		}
		return r.Work.Op == drivebay.WorkRemove || uuid == "" || r.Work.PVs[drive] == uuid
	})
}

// growingInPool returns how many extents of the thin pool in a group the growth of other volumes will take. LVM itself gives a
// thin volume any size. A growth that failed counts: it can be retried.
func (s PlacementView) growingInPool(group string) (n uint64) {
	for _, rec := range s.records {
		l := rec.Volume.Location
		if rec.Work.Op != drivebay.WorkExpand || l.Kind != drivebay.LocationThin || l.VG != group || rec.Volume.ID == s.grows {
			continue
		}
		have := uint64(0)
		if lv := partitions.LVOf(s.Index.LVM.Report, l); lv != nil {
			have = place.ExtentsOf(lv.Size)
		}
		n += place.ExtentsOf(SizeOfWork(rec)) - min(have, place.ExtentsOf(SizeOfWork(rec)))
	}
	return n
}

// promise subtracts the space that a volume that is being made will need.
func (s PlacementView) promise(r *place.DriveSpace, rec *drivebay.VolumeRecord) {
	l := rec.Volume.Location
	if r.PV == nil || r.PV.Group == "" { // its group is being made, too
		if r.PV == nil {
			var whole place.Span
			r.Free, whole = place.LargestOut(r.Free)
			r.PV, r.Used, r.Parts = &place.PVSpace{Extents: place.PVExtents(whole.Size())}, true, r.Parts+1
		}
		r.PV.Group, r.PV.Kind, r.PV.Members, r.PV.UUID = l.VG, l.Kind, rec.Work.PVs, rec.Work.PVs[r.Drive.ID]
		if l.Kind == drivebay.LocationThin {
			r.PV.Extents = place.PoolExtents(r.PV.Extents)
		}
	}
	if s.Index.LVM != nil && partitions.LVOf(s.Index.LVM.Report, l) != nil {
		return
	}
	need := place.ExtentsOf(SizeOfWork(rec))
	if l.Kind == drivebay.LocationMirror {
		need++
	}
	r.PV.Extents -= min(r.PV.Extents, need)
}
