package lvm

import (
	"fmt"
	"slices"
)

// RepairMirror plans to replace the lost legs of a mirror by new ones on other physical
// volumes.
func RepairMirror(group, name string, onto ...string) []Step {
	path := group + "/" + name
	return []Step{{
		Name: "repair mirror " + path,
		Argv: command([]string{"lvconvert", "--yes", "--repair", path}, pvArgs(onto)),
		Done: func(r *Report) bool {
			g := r.Group(group)
			if g == nil || g.LV(name) == nil {
				return false
			}
			under := g.PhysicalVolumesOf(name)
			return !g.LV(name).Partial && !slices.ContainsFunc(g.Missing(), func(u string) bool { return slices.Contains(under, u) })
		},
	}}
}

// ReplaceLeg plans to move one leg of a mirror while both are present.
func ReplaceLeg(group, name, from, onto string) []Step {
	path := group + "/" + name
	return []Step{{
		Name: fmt.Sprintf("replace the leg of mirror %s on physical volume %s", path, from),
		Argv: []string{"lvconvert", "--yes", "--replace", pvArg(from), path, pvArg(onto)},
		Done: func(r *Report) bool {
			g := r.Group(group)
			return g != nil && g.LV(name) != nil && !slices.Contains(g.PhysicalVolumesOf(name), from)
		},
	}}
}
