package daemon

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// The daemon runs beside the workloads of the machine. Go lets a heap double before it
// collects: that is right while there is much to do, and keeps memory for nothing while
// there is not.
const (
	leastRoom = 4 << 20                  // that an idle heap grows by before it is collected
	busyGC    = uint64(memoryTick / 1e9) // collections between two ticks: one a second
)

// memoryTick is how often the room is set from the size of the live heap.
const memoryTick = 10 * time.Second

// gcPercentFor returns by how much of a live heap it may grow before it is collected. A limit
// of all memory (GOMEMLIMIT) is no substitute: half-empty pages of the heap count towards it and
// are not returned, so that Go collected twice a second in vain (seen with 500 volumes: 127
// collections a minute, 2 % of a core).
func gcPercentFor(live, collections uint64) int {
	if collections > busyGC || live <= leastRoom {
		return 100
	}
	return int(100 * max(leastRoom, live/2) / live)
}

// boundMemory keeps the room of the heap up to date until ctx ends, unless an
// administrator has set it (GOMEMLIMIT, GOGC).
func boundMemory(ctx context.Context, clock host.Clock, getenv func(string) string) {
	if getenv("GOMEMLIMIT") != "" || getenv("GOGC") != "" {
		return
	}
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	is, collected := 100, uint64(0)
	defer debug.SetGCPercent(is)
	for {
		metrics.Read(samples)
		if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
			return // a runtime without these metrics keeps its defaults
		}
		live, cycles := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		if want := gcPercentFor(live, cycles-collected); want != is {
			debug.SetGCPercent(want)
			is = want
		}
		collected = cycles
		select {
		case <-ctx.Done():
			return
		case <-clock.After(memoryTick):
		}
	}
}
