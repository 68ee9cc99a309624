package notify

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/cursor"
)

// Engine is the part of the drive manager that the notifier needs.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	Events(after uint64, limit int) []drivebay.Event
	WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error)
}

// Clock is the machine's time.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Options configure a Notifier. Without a webhook and a command it has no sinks.
type Options struct {
	Webhook    string // URL; "": none
	SecretFile string // holds the key of the signature; "": requests are not signed
	CAFile     string // certificates that the webhook's is checked with; "": those of the system
	Command    []string
	Timeout    time.Duration // of one delivery
	Kinds      []Kind        // empty: all

	Cursor     string                 // file that holds the events that were handled last
	VolumeName func(id string) string // "" for a volume without a name; nil: no volume has one
	Version    string
	Clock      Clock
	Log        *slog.Logger
}

// Notifier sends notices.
type Notifier struct {
	engine Engine
	opt    Options
	cursor *cursor.Cursor
	sinks  []*sink
	faulty faults // by all events so far, those before a restart included
}

// New returns a notifier with the sinks that are configured.
func New(engine Engine, opt Options) *Notifier {
	if opt.VolumeName == nil {
		opt.VolumeName = func(string) string { return "" }
	}
	n := &Notifier{engine: engine, opt: opt, cursor: cursor.New(opt.Cursor, opt.Log.With("op", "notify")), faulty: faults{}}
	if opt.Webhook != "" {
		n.sinks = append(n.sinks, newSink("webhook", newWebhook(opt), n))
	}
	if len(opt.Command) > 0 {
		n.sinks = append(n.sinks, newSink("command", &command{argv: opt.Command, timeout: opt.Timeout}, n))
	}
	return n
}

// Run sends a notice for every event that causes one until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	if len(n.sinks) == 0 {
		<-ctx.Done()
		return nil
	}
	began := n.opt.Clock.Now()
	if _, err := n.engine.Wait(ctx, 0); err != nil { // the stored events are read once there is a snapshot
		return nil // ctx has ended
	}
	n.begin(began)
	var senders sync.WaitGroup
	defer senders.Wait()
	for _, s := range n.sinks {
		senders.Go(func() { s.run(ctx) })
	}
	for after := uint64(0); ; {
		events, err := n.engine.WaitEvents(ctx, after)
		if err != nil {
			return nil // ctx has ended
		}
		for _, e := range events {
			n.queue(e)
		}
		after = events[len(events)-1].Seq
	}
}

// begin sets the event with which each sink continues. A sink that is new begins with the events of
// this run, by their numbers: the clock may be ahead now, and be set back later.
func (n *Notifier) begin(began time.Time) {
	known, before := n.cursor.Load(), cursor.Mark{At: began.Add(-1)}
	for _, e := range n.engine.Events(0, 0) {
		if e.At.Before(began) {
			before.Seq = e.Seq
		}
	}
	for _, s := range n.sinks {
		last, ok := known[s.name]
		if !ok {
			last = before
		}
		s.last = last
		n.cursor.Set(s.name, last)
	}
}

// queue makes the notice of an event, if it causes one that is wanted, and queues it at the sinks that
// have not handled the event before a restart.
func (n *Notifier) queue(e drivebay.Event) {
	kind := kindOf(e, n.faulty)
	if kind == "" || len(n.opt.Kinds) > 0 && !slices.Contains(n.opt.Kinds, kind) {
		return
	}
	notice := noticeOf(e, kind, n.engine.Snapshot(), n.opt.VolumeName)
	notice.since = n.opt.Clock.Now()
	for _, s := range n.sinks {
		if !s.last.Covers(e) {
			s.push(notice)
		}
	}
}

// Result is what became of a trial notice at one sink.
type Result struct {
	Sink string
	Took time.Duration
	Err  error
}

// Trial sends a trial notice to every sink, once and past the queues.
func (n *Notifier) Trial(ctx context.Context) []Result {
	notice := trial(n.engine.Snapshot().Machine.Name, n.opt.Clock.Now())
	results := make([]Result, len(n.sinks))
	var all sync.WaitGroup
	for i, s := range n.sinks {
		all.Go(func() {
			began := time.Now()
			results[i] = Result{Sink: s.name, Err: s.send(ctx, notice)}
			results[i].Took = time.Since(began)
		})
	}
	all.Wait()
	return results
}

// Count is what a sink has done since the daemon started.
type Count struct {
	Sink      string
	Delivered uint64
	Failed    uint64 // attempts
	Dropped   uint64 // notices that were never delivered
	Queued    int
}

// Counts returns the counts of all sinks.
func (n *Notifier) Counts() []Count {
	var out []Count
	for _, s := range n.sinks {
		out = append(out, s.count())
	}
	return out
}
