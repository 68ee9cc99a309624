package daemon

import "testing"

// A heap gets as much room as it needs to be collected rarely, at most half of what is alive.
func TestRoomOfTheHeap(t *testing.T) {
	for live := uint64(0); live < 4<<30; live += 1 << 20 {
		before := 0
		for _, allocated := range []uint64{0, 1 << 20, 20 << 20, 32 << 20, 160 << 20, 4 << 30} {
			percent, busy := roomFor(live, allocated)
			if percent < before || percent < 12 || percent > 50 && live > 2*leastRoom {
				t.Fatalf("%d MiB alive, %d allocated: %d %%, %d %% with less", live>>20, allocated, percent, before)
			}
			room := live * uint64(percent) / 100
			if live > leastRoom && room < leastRoom*95/100 {
				t.Fatalf("%d MiB alive: room for %d bytes", live>>20, room)
			}
			if perSecond := allocated / uint64(memoryTick.Seconds()); percent < 50 && room*mostCollected < perSecond*95/100 {
				t.Fatalf("%d MiB alive, %d bytes a second: room for %d", live>>20, perSecond, room)
			}
			if busy && allocated <= 20<<20 {
				t.Fatalf("%d MiB alive: busy with %d bytes", live>>20, allocated)
			}
			if limit := uint64(limitFor(live)); limit < live+room+16<<20 {
				t.Fatalf("%d MiB alive: the limit is %d MiB", live>>20, limit>>20)
			}
			before = percent
		}
	}
}
