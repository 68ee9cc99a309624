package daemon

import "testing"

// An idle heap gets as much room as it needs to be collected rarely; a busy one grows by half.
func TestGCPercent(t *testing.T) {
	for live := uint64(0); live < 4<<30; live += 1 << 20 {
		idle, busy := gcPercentFor(live, false), gcPercentFor(live, true)
		if busy < busyRoom || busy > 100 || idle > busy || idle < 12 {
			t.Fatalf("%d MiB alive: %d %% idle, %d %% busy", live>>20, idle, busy)
		}
		if room := live * uint64(idle) / 100; live > leastRoom && room < leastRoom*95/100 {
			t.Fatalf("%d MiB alive: room for %d bytes", live>>20, room)
		}
		if limit := uint64(limitFor(live)); limit < live+live*uint64(busy)/100+16<<20 {
			t.Fatalf("%d MiB alive: the limit is %d MiB", live>>20, limit>>20)
		}
	}
}
