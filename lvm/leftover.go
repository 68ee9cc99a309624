package lvm

import (
	"fmt"
	"regexp"
)

// An LVM command that is killed while it makes or removes a thin pool can leave the pool's
// metadata volume, or its spare, under the name that LVM gives to unnamed volumes
// (2.03.16, tried). It takes space that the pool needs.

var unnamed = regexp.MustCompile(`^lvol[0-9]+$`)

// IsLeftover reports whether a volume is such a leftover: it has no given name, no tag
// and no user, and it is as large as the metadata of a pool.
func IsLeftover(lv *LV, metadata uint64) bool {
	return lv != nil && unnamed.MatchString(lv.Name) && lv.Type == "linear" && lv.Size == metadata && len(lv.Tags) == 0 && lv.Parent == "" && !lv.Open
}

// mostLeftovers is two from making and two from removing a pool.
const mostLeftovers = 4

// ClearLeftovers plans to remove the leftovers of a pool that does not exist or is not
// finished.
func ClearLeftovers(group, pool string, metadata uint64) []Step {
	var out []Step
	for n := range mostLeftovers {
		name := fmt.Sprintf("lvol%d", n)
		out = append(out, Step{
			Name: fmt.Sprintf("clear what is left over of thin pool %s/%s", group, pool),
			Argv: []string{"lvremove", "--yes", group + "/" + name},
			Done: func(r *Report) bool {
				lv := r.LV(group, pool)
				finished := lv != nil && !hasTag(lv, making)
				return finished || !IsLeftover(r.LV(group, name), metadata)
			},
		})
	}
	return out
}
