package lvm

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
)

// The state of LVM. A physical volume is known by the label on its drive; its membership in a group
// follows the label.

// State is what LVM knows of a machine's drives.
type State struct {
	*block.Devices
	physical map[string]*pv // by UUID
	kill     int            // point at which the next lvm command is killed; 0: it is not
}

func New(d *block.Devices) *State { return &State{Devices: d, physical: map[string]*pv{}} }

// group is a volume group.
type group struct {
	m          *State
	uuid, name string
	extent     uint64 // bytes
	tags       []string
	auto       bool // activated by udev's events
	exported   bool // vgexport(8)
	seq        int
	pvs        []*pv
	lvs        []*lv
	move       *relocation // in progress
}

// pv is a physical volume.
type pv struct {
	uuid    string
	group   *group
	size    uint64 // of its device
	start   uint64 // of the data, bytes
	missing bool   // marked missing: the group changed without it
	only    []area // the extents that a command names; nil: all
	hint    string // name of its device in the metadata, from the last write
}

// extents returns the number of extents of a physical volume.
func (p *pv) extents() uint64 { return (p.size - min(p.size, p.start)) / p.group.extent }

// area is a run of extents of a physical volume.
type area struct {
	pv       *pv
	start, n uint64
}

// lv is a logical volume, or a hidden part of one.
type lv struct {
	group      *group
	uuid, name string
	tags       []string
	parent     *lv    // of a hidden part
	part       string // rimage, rmeta, tdata, tmeta, spare
	kind       string // linear, raid1, thin-pool, thin
	extents    uint64
	areas      []area // linear

	images, metas []*lv     // raid1
	failed        []bool    // not in use in the active mirror
	fresh         []bool    // the leg has no data yet
	events        uint64    // event count of the superblocks
	recovers      time.Time // when the copy to a new leg began; zero: never

	data, meta *lv // thin-pool
	used       uint64
	failFull   bool
	unzeroed   bool // new blocks are not zeroed

	pool   *lv // thin
	origin *lv // of a snapshot
	chunks map[uint64]*chunk
	cached bool

	readOnly, skip bool
	dev            *block.Device // while it is active
}

func (v *lv) size() uint64  { return v.extents * v.group.extent }
func (v *lv) visible() bool { return v.parent == nil && v.part == "" && v.kind != "thin-pool" }
func (v *lv) path() string  { return v.group.name + "/" + v.name }

// parts returns the hidden volumes of a volume.
func (v *lv) parts() []*lv {
	switch v.kind {
	case "raid1":
		var list []*lv
		for i := range v.images {
			list = append(list, v.metas[i], v.images[i])
		}
		return list
	case "thin-pool":
		return []*lv{v.meta, v.data}
	}
	return nil
}

// under returns what a volume needs: itself, its parts and its pool.
func (v *lv) under() []*lv {
	list := []*lv{v}
	if v.pool != nil {
		list = append(list, v.pool.under()...)
	}
	return append(list, v.parts()...)
}

// drop releases a chunk.
func (v *lv) drop(number uint64) {
	if c := v.chunks[number]; c != nil {
		if c.refs--; c.refs == 0 {
			v.pool.used--
		}
		delete(v.chunks, number)
	}
}

// newID returns a new UUID in LVM's form: 32 letters and digits in groups.
func newID() string { return dashed(rand.Text() + rand.Text()) }

func dashed(s string) string {
	s = strings.ReplaceAll(s, "-", "")
	var parts []string
	for _, n := range []int{6, 4, 4, 4, 4, 4, 6} {
		parts, s = append(parts, s[:n]), s[n:]
	}
	return strings.Join(parts, "-")
}

func (g *group) lv(name string) *lv {
	if i := slices.IndexFunc(g.lvs, func(v *lv) bool { return v.name == name }); i >= 0 {
		return g.lvs[i]
	}
	return nil
}

// taken returns the areas in use on a physical volume, sorted by start.
func (g *group) taken(p *pv) []area {
	var list []area
	for _, v := range g.lvs {
		list = append(list, v.areas...)
	}
	if g.move != nil {
		list = append(list, g.move.to...)
	}
	list = slices.DeleteFunc(list, func(a area) bool { return a.pv != p })
	slices.SortFunc(list, func(a, b area) int { return cmp.Compare(a.start, b.start) })
	return list
}

// free returns the free areas of a physical volume.
func (g *group) free(p *pv) []area {
	var list []area
	at := uint64(0)
	for _, a := range append(g.taken(p), area{p, p.extents(), 0}) {
		if a.start > at {
			list = append(list, area{p, at, a.start - at})
		}
		at = a.start + a.n
	}
	return p.named(list)
}

// named returns the parts of the areas that a command names.
func (p *pv) named(list []area) []area {
	if p.only == nil {
		return list
	}
	var kept []area
	for _, a := range list {
		for _, o := range p.only {
			if from, to := max(a.start, o.start), min(a.start+a.n, o.start+o.n); from < to {
				kept = append(kept, area{p, from, to - from})
			}
		}
	}
	return kept
}

func extentsOf(areas []area) uint64 {
	var n uint64
	for _, a := range areas {
		n += a.n
	}
	return n
}

// room returns the number of free extents on some physical volumes.
func (g *group) room(pvs []*pv) uint64 {
	var n uint64
	for _, p := range pvs {
		n += extentsOf(g.free(p))
	}
	return n
}

// take returns n free extents, in the order of the physical volumes; nil if there are too few.
func (g *group) take(n uint64, pvs []*pv) []area {
	var list []area
	for _, p := range pvs {
		for _, a := range g.free(p) {
			if some := min(a.n, n); some > 0 {
				list = append(list, area{p, a.start, some})
				n -= some
			}
		}
	}
	if n > 0 {
		return nil
	}
	return list
}

// joined merges adjacent areas.
func joined(areas []area) []area {
	var out []area
	for _, a := range areas {
		if i := len(out) - 1; i >= 0 && out[i].pv == a.pv && out[i].start+out[i].n == a.start {
			out[i].n += a.n
		} else {
			out = append(out, a)
		}
	}
	return out
}

// add adds a volume to the group.
func (g *group) add(v *lv) *lv {
	v.group, v.uuid = g, newID()
	g.lvs = append(g.lvs, v)
	return v
}

// forget removes volumes from the group.
func (g *group) forget(list ...*lv) {
	g.lvs = slices.DeleteFunc(g.lvs, func(v *lv) bool { return slices.Contains(list, v) })
}

func (v *lv) sub(part string, i int) string {
	if i < 0 {
		return v.name + "_" + part
	}
	return fmt.Sprintf("%s_%s_%d", v.name, part, i)
}
