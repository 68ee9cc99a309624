package daemon

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// The daemon runs beside the workloads of the machine. Go lets a heap double before it
// collects, and the memory of the start, when every drive is read at once, stays
// resident for long. A limit makes Go collect earlier and return memory.
const (
	smallLimit = 18 << 20
	overhead   = 6 << 20 // stacks and the runtime's own memory
)

// memoryTick is how often the limit is set from the size of the live heap.
const memoryTick = 10 * time.Second

// limitFor returns the memory limit for a live heap. It is at least twice the heap:
// a machine with a thousand drives gets as much as without a limit.
func limitFor(live uint64) int64 { return max(smallLimit, int64(2*live+overhead)) }

// boundMemory keeps the memory limit up to date until ctx ends, unless an
// administrator has set one (GOMEMLIMIT, GOGC).
func boundMemory(ctx context.Context, clock host.Clock, getenv func(string) string) {
	if getenv("GOMEMLIMIT") != "" || getenv("GOGC") != "" {
		return
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1)) // -1 only returns the limit in force
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		metrics.Read(live)
		if live[0].Value.Kind() != metrics.KindUint64 {
			return // a runtime without this metric keeps its defaults
		}
		debug.SetMemoryLimit(limitFor(live[0].Value.Uint64()))
		select {
		case <-ctx.Done():
			return
		case <-clock.After(memoryTick):
		}
	}
}
