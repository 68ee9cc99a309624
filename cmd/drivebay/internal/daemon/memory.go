package daemon

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// The daemon runs beside the workloads of the machine. Go lets a heap double before it
// collects: that keeps memory for nothing while there is little to do. The pages that a peak
// leaves half empty stay: with 500 volumes that were made one after the other (16 MB allocated a second), a heap that
// doubles ends 3 MB larger than one that grows by half, and that 2.6 MB larger than one that grows by a quarter.
// Statistics a thousand times a second, and deletions beside them, allocate much more: with a heap that grows by a quarter, a quarter of the
// daemon's processor time was the collection.
const (
	leastRoom     = 2 << 20  // that a heap grows by before it is collected
	mostCollected = 10       // how often a second a heap is collected that may still grow: by half at most
	overhead      = 16 << 20 // stacks, the runtime's own memory, half-empty pages of the heap
)

// While all drives are read for the first time, what the heap needs does not show yet. With the limit of the first moment, Go collected
// 250 times until 100 drives were read, which took two thirds of the start (2.4 s; 0.8 s with these).
const (
	startRoom  = 100      // percent
	startLimit = 96 << 20 // of all memory: a fifth of what the pod may take
)

// memoryTick is how often the room is set, from the size of the live heap and what was allocated since.
const memoryTick = 2 * time.Second

// What a busy time took is returned some idle ticks after it, not over minutes, and again from time to time: after a busy time there
// is a tail, such as a thousand objects to be written, whose garbage and whose pages of the program would stay.
const (
	releaseAfter = 5
	releaseEvery = 30
)

// roomFor returns by how much of a live heap it may grow before it is collected, and whether that is more than an idle one may.
// An eighth: with the objects of 500 volumes in Kubernetes, a daemon that may grow by a quarter takes 1.4 MB more, and 0.3 % of a
// core less.
func roomFor(live, allocated uint64) (percent int, busy bool) {
	idle := max(leastRoom, live/8)
	room := max(idle, min(live/2, uint64(float64(allocated)/memoryTick.Seconds()/mostCollected)))
	if live <= room {
		return 100, room > idle
	}
	return int((100*room + live - 1) / live), room > idle
}

// limitFor returns the limit of all memory, which bounds the peak when every drive is read at once.
// It must be far above what an idle daemon needs: half-empty pages of the heap count towards it and
// are not returned, so that Go collects in vain near the limit (seen with 500 volumes and a limit of
// 23 MB: twice a second, 2 % of a core).
func limitFor(live uint64) int64 { return int64(2*live + overhead) }

// boundMemory keeps the room of the heap and the limit up to date until ctx ends, unless an
// administrator has set one (GOMEMLIMIT, GOGC).
func boundMemory(ctx context.Context, clock host.Clock, getenv func(string) string) {
	if getenv("GOMEMLIMIT") != "" || getenv("GOGC") != "" {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(startRoom))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(startLimit))
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	percent, allocated, idle := startRoom, uint64(0), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.After(memoryTick):
		}
		metrics.Read(samples)
		if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
			return // a runtime without these metrics keeps its defaults
		}
		live, all := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		debug.SetMemoryLimit(limitFor(live))
		want, busy := roomFor(live, all-allocated)
		if want != percent { // setting it stops the world
			debug.SetGCPercent(want)
			percent = want
		}
		if busy {
			idle = 0
		} else if idle++; idle%releaseEvery == releaseAfter {
			debug.FreeOSMemory()
			forgetFiles()
		}
		allocated = all
	}
}
