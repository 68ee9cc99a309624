//go:build race

package volume_test

import (
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// stride leaves out four of five kills, and of five cases of the largest tables: to the race
// detector they are all the same code, and it takes six times as long. Without it none is left
// out.
const stride = 5

// some are those that go through code of their own, for the same reason.
func some(all map[string]drivebay.VolumeRequest) map[string]drivebay.VolumeRequest {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ drivebay.VolumeRequest) bool {
		return !slices.Contains([]string{"a partition", "ext4 on thin", "a mirror"}, name)
	})
	return out
}
