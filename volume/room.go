package volume

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/lvm"
)

// room is the space that a drive has left, as known without touching it. A volume
// that is being made counts as made.
type room struct {
	drive *drivebay.Drive
	free  []span // ranges without a partition, by start
	used  bool   // there are partitions, or will be
	pv    *pvRoom
}

// pvRoom is the physical volume of a drive, and the group that it is in or will
// be in.
type pvRoom struct {
	uuid    string
	group   string
	kind    drivebay.LocationKind // UNKNOWN: nothing has been made in it yet
	members map[string]string     // drive id -> PV
	extents uint64                // free ones; in a thin group, those of its pool
}

// span is a range of a drive in bytes.
type span struct {
	start, end uint64
	after      uint64 // of a free range: size of the partition right before it
}

func (s span) size() uint64 { return s.end - s.start }

// placementView is the state from which places are chosen.
type placementView struct {
	drives  *drivebay.Snapshot
	index   index
	volumes []*drivebay.VolumeRecord
	records []*drivebay.VolumeRecord // those with work under way
	snaps   []*drivebay.SnapshotRecord
	moving  map[string]string // drive -> the group that moves to it or from it
	uses    map[string][]recordedUse
	layouts map[string]string // how table and kernel differ, by drive
	grows   string            // id of the volume that may use the space kept free for it
	unmoved map[string]string // why a volume could not be moved a short time ago, by id
	// blankPVs are partitions for a physical volume that read back blank, by drive.
	blankPVs map[string]part
}

// rooms returns the room of each drive that a new volume of a class may be put on,
// best first: with a group that it can join, least worn, least filled, then by id.
func (s placementView) rooms(c drivebay.Class) []room {
	var out []room
	for i := range s.drives.Drives {
		d := &s.drives.Drives[i]
		parts, listed := s.index.parts[d.ID]
		if listed && mayTake(d, c) && !slices.ContainsFunc(parts, func(p part) bool { return !strings.HasPrefix(p.title, content.OursPrefix) }) && s.doubt(d, parts) == nil {
			out = append(out, s.room(d, parts))
		}
	}
	slices.SortStableFunc(out, func(a, b room) int {
		return cmp.Or(cmp.Compare(b.joins(c.Backing), a.joins(c.Backing)), cmp.Compare(wornBy(a.drive), wornBy(b.drive)), cmp.Compare(b.share(c.Backing), a.share(c.Backing)), cmp.Compare(a.drive.ID, b.drive.ID))
	})
	return out
}

// mayTake reports whether a drive accepts new volumes of a class.
func mayTake(d *drivebay.Drive, c drivebay.Class) bool {
	return d.Claim != nil && !d.Cordoned && d.Health == drivebay.HealthGood && len(d.Refusals()) == 0 &&
		(c.Drives == drivebay.TypeUnknown || c.Drives == d.Type)
}

func wornBy(d *drivebay.Drive) int {
	if d.Wear == nil {
		return 0
	}
	return d.Wear.PercentUsed
}

// joins returns 1 if a group of the backing's kind has room. A new group gets all free
// space of its drive, so an unneeded group leaves no room for partitions and whole drives.
func (r *room) joins(b drivebay.Backing) int {
	if r.pv != nil && r.pv.group != "" && r.pv.kind == kindOf(b) && r.pv.extents > 0 {
		return 1
	}
	return 0
}

// share returns how much of the drive is left for a backing, in thousandths.
func (r *room) share(b drivebay.Backing) uint64 {
	var left uint64
	switch b {
	case drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror:
		left = r.extents(kindOf(b)) * lvm.ExtentSize
	default:
		for _, f := range r.free {
			left += f.size()
		}
	}
	return left / (r.drive.Size/1000 + 1)
}

func kindOf(b drivebay.Backing) drivebay.LocationKind {
	switch b {
	case drivebay.BackingPartition:
		return drivebay.LocationPartition
	case drivebay.BackingDrive:
		return drivebay.LocationDrive
	case drivebay.BackingLVM:
		return drivebay.LocationLVM
	case drivebay.BackingThin:
		return drivebay.LocationThin
	case drivebay.BackingMirror:
		return drivebay.LocationMirror
	}
	return drivebay.LocationUnknown
}

// room computes what is left of one drive.
func (s placementView) room(d *drivebay.Drive, parts []part) room {
	r := room{drive: d, used: len(parts) > 0}
	taken := make([]span, 0, len(parts))
	for _, p := range parts {
		end := p.start + p.size
		if rec := s.growing(p); rec != nil {
			end = max(end, p.start+sizeOfWork(rec))
		}
		taken = append(taken, span{start: p.start, end: end})
	}
	r.free = freeSpans(d.Size, d.LogicalBlock, append(taken, s.keptFree(d.ID, parts)...))
	if p, ok := pvOn(parts); ok {
		r.pv = s.physical(d, p)
	}
	for _, rec := range s.records {
		l, name := rec.Volume.Location, partitionName(rec.Volume.ID)
		if m := moveOf(rec); m != nil && !moved(rec) {
			l, name = m.To, m.Name
		} else if rec.Work == nil || rec.Work.Op != drivebay.WorkCreate {
			continue
		}
		if !slices.Contains(l.Drives, d.ID) {
			continue
		}
		if l.VG == "" {
			if _, there := instanced(parts, name, l.Partition); !there {
				r.used = true
				r.free, _ = take(r.free, sizeOfWork(rec))
			}
			continue
		}
		s.promise(&r, rec)
	}
	for _, snap := range s.snaps { // they are made in existing groups
		l := snap.Snapshot.Location
		if r.pv != nil && r.pv.group == l.VG && snap.Work != nil && snap.Work.Op == drivebay.WorkCreate && s.index.lvm.lacks(l) {
			r.pv.extents -= min(r.pv.extents, extentsOf(snap.Snapshot.Size+overhead(snap.Snapshot.LUKSUUID)))
		}
	}
	if group, is := s.moving[d.ID]; is {
		if r.pv == nil { // the physical volume will be made
			r.free, _ = largestOut(r.free)
		}
		r.pv, r.used = &pvRoom{group: group}, true
	}
	return r
}

// growing returns the record of the volume that a partition belongs to while it grows.
func (s placementView) growing(p part) *drivebay.VolumeRecord {
	for _, rec := range s.records {
		if rec.Work != nil && rec.Work.Op == drivebay.WorkExpand && partitionName(rec.Volume.ID) == p.title && sameGUID(p.guid, rec.Volume.Location.Partition) {
			return rec
		}
	}
	return nil
}

// physical returns the room of the physical volume that LVM reports on a drive. A
// partition for one without a volume group is free only if it reads back blank, or if
// the records announce that a group is being made or removed there. Everything else that
// LVM does not list is unknown, not absent.
func (s placementView) physical(d *drivebay.Drive, p part) *pvRoom {
	out := &pvRoom{}
	x := s.index.lvm
	if x == nil || x.pvs[d.ID] == "" { // LVM has not been asked since the partition was made
		if s.announced(d.ID, "") {
			out.extents = pvExtents(p.size)
		}
		return out
	}
	pv, g := x.report.On(x.pvs[d.ID])
	if pv != nil {
		out.uuid = pv.UUID
	}
	if g == nil {
		if s.announced(d.ID, out.uuid) || pv == nil && s.blankPVs[d.ID].device == p.device {
			out.extents = pvExtents(p.size)
		}
		return out
	}
	out.group, out.kind, out.members = g.Name, groupKind(g), s.members(g)
	out.extents = pv.Free / lvm.ExtentSize
	if out.kind == drivebay.LocationThin {
		out.extents = poolExtents(pv.Free / lvm.ExtentSize)
		if pool := g.LV(poolName); pool != nil {
			out.extents = unpromised(g, pool)
		}
	}
	if !pv.Allocatable || pv.Missing || len(g.Missing()) > 0 || x.group(g.Name) == nil {
		out.extents = 0
	}
	return out
}

// announced reports whether a volume that is being made needs a physical volume on a
// drive (with this UUID, if LVM reports one), or whether the last volume on it is being
// removed and its data is wiped.
func (s placementView) announced(drive, uuid string) bool {
	return slices.ContainsFunc(s.records, func(r *drivebay.VolumeRecord) bool {
		if mustBeThere(r.Work) || r.Volume.Location.VG == "" || !slices.Contains(r.Volume.Location.Drives, drive) {
			return false
		}
		return r.Work.Op == drivebay.WorkRemove || uuid == "" || r.Work.PVs[drive] == uuid
	})
}

// members returns the drives of a group with their physical volumes' UUIDs.
func (s placementView) members(g *lvm.Group) map[string]string {
	out := map[string]string{}
	for id, dev := range s.index.lvm.pvs {
		for _, p := range g.PVs {
			if p.Device == dev {
				out[id] = p.UUID
			}
		}
	}
	return out
}

// unpromised returns how many extents of a thin pool no volume or snapshot can ever fill.
func unpromised(g *lvm.Group, pool *lvm.LV) uint64 {
	left := pool.Size
	for _, lv := range g.LVs {
		if lv.Pool == pool.Name {
			left -= min(left, lv.Size)
		}
	}
	return left / lvm.ExtentSize
}

// promise subtracts the space that a volume that is being made will need.
func (s placementView) promise(r *room, rec *drivebay.VolumeRecord) {
	l := rec.Volume.Location
	if r.pv == nil || r.pv.group == "" { // its group is being made, too
		if r.pv == nil {
			var whole span
			r.free, whole = largestOut(r.free)
			r.pv, r.used = &pvRoom{extents: pvExtents(whole.size())}, true
		}
		r.pv.group, r.pv.kind, r.pv.members, r.pv.uuid = l.VG, l.Kind, rec.Work.PVs, rec.Work.PVs[r.drive.ID]
		if l.Kind == drivebay.LocationThin {
			r.pv.extents = poolExtents(r.pv.extents)
		}
	}
	if s.index.lvm != nil && lvOf(s.index.lvm.report, l) != nil {
		return
	}
	need := extentsOf(sizeOfWork(rec))
	if l.Kind == drivebay.LocationMirror {
		need++
	}
	r.pv.extents -= min(r.pv.extents, need)
}
