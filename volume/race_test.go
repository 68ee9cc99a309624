//go:build race

package volume_test

import (
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// everyNth leaves out twelve of thirteen kills, and of thirteen cases of the largest tables: to the race
// detector they are all the same code, and it takes six times as long. `make test-long` leaves none
// out.
const everyNth = 13

// some are those that go through code of their own, for the same reason.
func some(all map[string]drivebay.VolumeRequest) map[string]drivebay.VolumeRequest {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ drivebay.VolumeRequest) bool {
		return !slices.Contains([]string{"a partition", "ext4 on thin", "a mirror", "encrypted ext4 on a partition"}, name)
	})
	return out
}

// few are two of several cases that differ little, for the same reason.
func few[T any](all []T) []T {
	if len(all) < 3 {
		return all
	}
	return []T{all[0], all[len(all)-1]}
}
