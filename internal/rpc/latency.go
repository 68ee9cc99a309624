package rpc

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// LatencyBounds are the upper bounds of the buckets: answers from memory, from LVM and the kernel, mkfs
// and checks of a filesystem, and what callers wait for at most.
var LatencyBounds = [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}

// Latencies counts the calls of all servers by service, method and code. Its size is bounded: only
// registered methods are counted, and there are 17 codes.
type Latencies struct {
	mu sync.Mutex
	of map[call]*counts
}

type call struct {
	method string // "/csi.v1.Node/NodeGetInfo"
	code   codes.Code
}

type counts struct {
	buckets [len(LatencyBounds)]uint64
	calls   uint64
	took    time.Duration
}

// Latency is the histogram of the calls of one method that ended with one code.
type Latency struct {
	Service, Method, Code string
	Within                [len(LatencyBounds)]uint64 // calls that took no longer than each bound
	Calls                 uint64
	Sum                   time.Duration
}

// observe counts one call. A nil receiver counts nothing.
func (l *Latencies) observe(method string, code codes.Code, took time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[call]*counts{}
	}
	c := l.of[call{method, code}]
	if c == nil {
		c = &counts{}
		l.of[call{method, code}] = c
	}
	c.calls++
	c.took += took
	for i, bound := range LatencyBounds {
		if took <= bound {
			c.buckets[i]++
		}
	}
}

// All returns the histograms, by service, method and code.
func (l *Latencies) All() []Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(l.of), func(a, b call) int {
		return cmp.Or(strings.Compare(a.method, b.method), cmp.Compare(a.code, b.code))
	})
	out := make([]Latency, 0, len(keys))
	for _, k := range keys {
		c := l.of[k]
		service, method, _ := strings.Cut(strings.TrimPrefix(k.method, "/"), "/")
		out = append(out, Latency{Service: service, Method: method, Code: k.code.String(), Within: c.buckets, Calls: c.calls, Sum: c.took})
	}
	return out
}
