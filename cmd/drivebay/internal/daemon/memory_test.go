package daemon

import "testing"

// The limit keeps a small daemon small and never comes near what is alive.
func TestLimitFor(t *testing.T) {
	for live := uint64(0); live < 4<<30; live += 1 << 20 {
		limit := uint64(limitFor(live))
		if limit < smallLimit || limit < 2*live || (live <= 6<<20 && limit != smallLimit) {
			t.Fatalf("%d MiB alive: the limit is %d MiB", live>>20, limit>>20)
		}
	}
}
