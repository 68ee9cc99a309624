package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// The daemon lives beside other people's data paths. Go lets a heap double before
// it collects, and the burst of the start, when every drive is asked at once,
// stays resident long after. A limit makes it collect earlier and give back.
const (
	smallLimit = 20 << 20
	overhead   = 8 << 20 // stacks, and what the runtime keeps for itself
)

// memoryTick is how often the limit follows what is alive.
const memoryTick = 10 * time.Second

// limitFor never asks for the impossible: a machine with a thousand drives gets
// twice what is alive, as without a limit.
func limitFor(live uint64) int64 { return max(smallLimit, int64(2*live+overhead)) }

// boundMemory holds the daemon to the limit until ctx ends, unless an
// administrator has set one (GOMEMLIMIT, GOGC).
func boundMemory(ctx context.Context, clock host.Clock, getenv func(string) string) {
	if getenv("GOMEMLIMIT") != "" || getenv("GOGC") != "" {
		return
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1)) // -1 asks what it is
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		metrics.Read(live)
		if live[0].Value.Kind() != metrics.KindUint64 {
			return // another runtime: its own defaults
		}
		debug.SetMemoryLimit(limitFor(live[0].Value.Uint64()))
		select {
		case <-ctx.Done():
			return
		case <-clock.After(memoryTick):
		}
	}
}
