package metrics

import (
	"strconv"
	"time"
)

// Edges are what the other edges count. A nil function has nothing to count.
type Edges struct {
	RPC     func() []RPC
	Notices func() []Notices
}

// RPC is the histogram of the gRPC calls of one method that ended with one code.
type RPC struct {
	Service, Method, Code string
	Buckets               []Bucket
	Calls                 uint64
	Sum                   time.Duration
}

// Bucket is how many calls took no longer than a bound.
type Bucket struct {
	Bound time.Duration
	Calls uint64
}

// Notices is what became of the notices of one sink, since the daemon started.
type Notices struct {
	Sink                       string
	Delivered, Failed, Dropped uint64
	Queued                     int
}

const rpcName = "rpc_duration_seconds"

var rpcLabels = []string{"service", "method", "code"}

// noticeMetrics are the families of the notices.
var noticeMetrics = []metric[[]Notices]{
	{"notices_total", "Notices by what became of them: delivered, or dropped because too many waited, one was too old or the receiver refused it.", counter, []string{"sink", "result"}, func(all []Notices, add emit) {
		for _, n := range all {
			add(float64(n.Delivered), n.Sink, "delivered")
			add(float64(n.Dropped), n.Sink, "dropped")
		}
	}},
	{"notice_failures_total", "Attempts to deliver a notice that failed; they are repeated.", counter, []string{"sink"}, func(all []Notices, add emit) {
		for _, n := range all {
			add(float64(n.Failed), n.Sink)
		}
	}},
	{"notices_queued", "Notices that wait to be delivered.", gauge, []string{"sink"}, func(all []Notices, add emit) {
		for _, n := range all {
			add(float64(n.Queued), n.Sink)
		}
	}},
}

func (p *page) edges(e Edges) {
	if e.Notices != nil {
		all := e.Notices()
		for _, m := range noticeMetrics {
			whole(p, all, m)
		}
	}
	if e.RPC != nil {
		p.latencies(e.RPC())
	}
}

// latencies writes the histogram of the gRPC calls.
func (p *page) latencies(all []RPC) {
	p.family("drivebay_"+rpcName, "How long gRPC calls took, by service, method and code.", "histogram", func(name string) {
		p.seen = map[uint64]bool{}
		for _, r := range all {
			values := []string{r.Service, r.Method, r.Code, ""}
			for _, b := range r.Buckets {
				values[3] = strconv.FormatFloat(b.Bound.Seconds(), 'g', -1, 64)
				p.sample(name+"_bucket", append(rpcLabels[:3:3], "le"), values, float64(b.Calls))
			}
			values[3] = "+Inf"
			p.sample(name+"_bucket", append(rpcLabels[:3:3], "le"), values, float64(r.Calls))
			p.sample(name+"_sum", rpcLabels, values[:3], r.Sum.Seconds())
			p.sample(name+"_count", rpcLabels, values[:3], float64(r.Calls))
		}
	})
}
