package lvm

import "slices"

// Report is what LVM reports about the drives in its list, at one moment.
type Report struct {
	Groups []Group
	Free   []PV // physical volumes without a group
}

// Group is a volume group with its physical and logical volumes.
type Group struct {
	UUID, Name     string
	Size, Free     uint64 // bytes
	ExtentSize     uint64 // bytes
	FreeExtents    uint64
	MetadataFree   uint64 // bytes left in the fullest metadata area
	Seq            uint64 // grows with every change
	SystemID       string
	Tags           []string
	Partial        bool // a physical volume is lost
	AutoActivation bool
	Exported       bool
	PVs            []PV
	LVs            []LV
}

// PV is a physical volume. A lost one has no Device.
type PV struct {
	UUID        string
	Device      string // its current device node
	DeviceSize  uint64
	Size, Free  uint64 // bytes for volumes
	DataStart   uint64 // bytes
	Missing     bool   // lost, or back and still marked as missing (RestoreMissing)
	Allocatable bool
	Duplicate   bool // two drives have this UUID
	InUse       bool // according to its label it belongs to a group
	NoMetadata  bool // it has no readable copy of the group's metadata; CreateGroup gives each one a copy
	Tags        []string
}

// DataEnd returns where the extents of a physical volume in a group end, in bytes.
func (p *PV) DataEnd() uint64 { return p.DataStart + p.Size }

// LV is a logical volume, or a hidden part of one.
type LV struct {
	UUID, Name string
	Parent     string // of a hidden part: the volume it belongs to
	Attr       string // lvs(8), "lv_attr bits"
	Layout     []string
	Role       []string
	Size       uint64
	Type       string // of its first segment: linear, raid1, thin, thin-pool ...
	Origin     string // of a snapshot
	Pool       string // of a thin volume
	Tags       []string
	Path       string // "/dev/GROUP/NAME"; hidden parts have none
	Major      int    // -1 while it is not active
	Minor      int

	Active, Suspended, Open, ReadOnly bool
	NoTable                           bool   // it has a device without a table, which is not active: a command was killed on the way
	Partial                           bool   // some extents are on a lost drive
	Health                            string // as LVM reports it: partial, refresh needed, mismatches exist, out_of_data ...; "" is healthy
	ErrorWhenFull                     bool   // a full thin pool refuses writes at once

	Data, Metadata Percent // how full a thin pool or volume is
	Sync           Percent // how much of a mirror or a move is copied
	SyncAction     string  // idle, resync, recover, check ...
	Mismatches     uint64
	MovesFrom      string // of a move: UUID of the physical volume that it empties

	Segments []Segment
	Extents  []Allocation
}

// Segment is a mapped piece of a volume.
type Segment struct {
	Type         string
	Start, Count uint64 // extents
	Stripes      uint64
	On           []string // devices of drives, or names of hidden volumes
}

// Allocation is a run of extents of a physical volume that is allocated to a volume.
type Allocation struct {
	PV           string // UUID
	Start, Count uint64
}

// Percent is a share that may be unknown: an inactive volume has none.
type Percent struct {
	Known bool
	Value float64 // 0 to 100
}

// Full reports whether everything is done or used.
func (p Percent) Full() bool { return p.Known && p.Value >= 100 }

// Group returns a volume group, or nil.
func (r *Report) Group(name string) *Group {
	for i := range r.Groups {
		if r.Groups[i].Name == name {
			return &r.Groups[i]
		}
	}
	return nil
}

// PV returns a physical volume, and its group if it has one.
func (r *Report) PV(uuid string) (*PV, *Group) {
	return r.findPV(func(p *PV) bool { return p.UUID == uuid })
}

// Unreadable reports whether a physical volume belongs to a group of which LVM can read
// nothing on it (lvm2 2.03.16 lists it without a group and says "marked in use but no VG
// was found using it").
func (p *PV) Unreadable(g *Group) bool { return g == nil && p.InUse }

// On returns the physical volume on a device node, and its group if it has one.
func (r *Report) On(device string) (*PV, *Group) {
	return r.findPV(func(p *PV) bool { return p.Device != "" && p.Device == device })
}

func (r *Report) findPV(is func(*PV) bool) (*PV, *Group) {
	for i := range r.Groups {
		g := &r.Groups[i]
		for j := range g.PVs {
			if is(&g.PVs[j]) {
				return &g.PVs[j], g
			}
		}
	}
	for i := range r.Free {
		if is(&r.Free[i]) {
			return &r.Free[i], nil
		}
	}
	return nil, nil
}

// LV returns a volume by group and name, or nil.
func (r *Report) LV(group, name string) *LV {
	if g := r.Group(group); g != nil {
		return g.LV(name)
	}
	return nil
}

// LV returns a volume, or nil.
func (g *Group) LV(name string) *LV {
	for i := range g.LVs {
		if g.LVs[i].Name == name {
			return &g.LVs[i]
		}
	}
	return nil
}

// ZeroesBlocks reports whether a thin pool zeroes a block before a volume sees it
// (lvs(8), "lv_attr bits", the eighth).
func (lv *LV) ZeroesBlocks() bool { return len(lv.Attr) > 7 && lv.Attr[7] == 'z' }

// Metadata returns the hidden metadata volume of a thin pool; nil if g is nil or the
// report lacks the volume.
func (g *Group) Metadata(pool string) *LV {
	if g == nil {
		return nil
	}
	i := slices.IndexFunc(g.LVs, func(lv LV) bool {
		return lv.Parent == pool && slices.Contains(lv.Role, "pool") && slices.Contains(lv.Role, "metadata")
	})
	if i < 0 {
		return nil
	}
	return &g.LVs[i]
}

// Missing returns the UUIDs of the lost physical volumes.
func (g *Group) Missing() []string {
	var out []string
	for _, p := range g.PVs {
		if p.Missing {
			out = append(out, p.UUID)
		}
	}
	return out
}

// Whole reports whether no physical volume of the group is lost.
func (g *Group) Whole() bool { return !g.Partial && len(g.Missing()) == 0 }

// PhysicalVolumesOf returns the UUIDs of the physical volumes that a volume needs: for its own
// extents, those of its hidden parts and those of its pool.
func (g *Group) PhysicalVolumesOf(name string) []string {
	seen, found := map[string]bool{}, map[string]bool{}
	var walk func(string)
	walk = func(name string) {
		if name == "" || seen[name] {
			return
		}
		seen[name] = true
		for i := range g.LVs {
			lv := &g.LVs[i]
			switch name {
			case lv.Name:
				for _, e := range lv.Extents {
					found[e.PV] = true
				}
				walk(lv.Pool)
				for _, s := range lv.Segments { // below a volume that moves: the move
					for _, on := range s.On {
						walk(on)
					}
				}
			case lv.Parent:
				walk(lv.Name)
			}
		}
	}
	walk(name)
	var out []string
	for _, p := range g.PVs {
		if found[p.UUID] {
			out = append(out, p.UUID)
		}
	}
	return out
}

// Uses reports whether any volume has extents on a physical volume.
func (g *Group) Uses(pv string) bool {
	return slices.ContainsFunc(g.LVs, func(lv LV) bool {
		return slices.ContainsFunc(lv.Extents, func(e Allocation) bool { return e.PV == pv })
	})
}

// Move returns the pvmove under way that empties a physical volume, or nil.
func (g *Group) Move(pv string) *LV {
	for i := range g.LVs {
		if g.LVs[i].MovesFrom == pv {
			return &g.LVs[i]
		}
	}
	return nil
}
