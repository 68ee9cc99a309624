package lvm

import (
	"fmt"
	"regexp"
)

// An lvm that is killed as it makes or removes a thin pool can leave what was to be
// the pool's bookkeeping, or the spare of it, as a volume under the name that lvm
// gives to what has none (2.03.16, tried). It takes room that the pool needs.

var unnamed = regexp.MustCompile(`^lvol[0-9]+$`)

// IsLeftover tells such a volume, by all that can be told of it: nobody named or
// tagged it, nobody uses it, and it is as large as a pool's bookkeeping.
func IsLeftover(lv *LV, metadata uint64) bool {
	return lv != nil && unnamed.MatchString(lv.Name) && lv.Type == "linear" && lv.Size == metadata && len(lv.Tags) == 0 && lv.Parent == "" && !lv.Open
}

// mostLeftovers is two of making and two of removing.
const mostLeftovers = 4

// ClearLeftovers plans to remove what is left over of a pool that is not there, or
// that is not finished.
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
