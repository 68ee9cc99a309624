package lvm

import (
	"maps"
	"slices"
)

// undo returns what puts the groups back as they are now. A command that cannot write the metadata of a group leaves the group as it was: only
// what it has activated or deactivated so far stays so (lvm2, lib/metadata/metadata.c, vg_revert).
func (s *State) undo() func() {
	physical, pvs, groups, volumes := maps.Clone(s.physical), map[*pv]pv{}, map[*group]group{}, map[*lv]lv{}
	for _, p := range physical {
		pvs[p] = *p
		g := p.group
		if _, known := groups[g]; known || g == nil {
			continue
		}
		was := *g
		was.tags, was.pvs, was.lvs = slices.Clone(g.tags), slices.Clone(g.pvs), slices.Clone(g.lvs)
		groups[g] = was
		for _, v := range g.lvs {
			for _, part := range v.under() {
				volumes[part] = part.copied()
			}
		}
	}
	return func() {
		s.physical = physical
		for p, was := range pvs {
			*p = was
		}
		for g, was := range groups {
			*g = was
		}
		for v, was := range volumes {
			was.dev = v.dev
			*v = was
			for _, c := range v.chunks {
				c.refs = 0
			}
		}
		for v := range volumes {
			for _, c := range v.chunks { // of which volumes share some
				c.refs++
			}
		}
	}
}

// copied returns a copy that shares nothing which a command changes in place.
func (v *lv) copied() lv {
	was := *v
	was.tags, was.areas, was.images, was.metas = slices.Clone(v.tags), slices.Clone(v.areas), slices.Clone(v.images), slices.Clone(v.metas)
	was.failed, was.fresh, was.chunks = slices.Clone(v.failed), slices.Clone(v.fresh), maps.Clone(v.chunks)
	return was
}
