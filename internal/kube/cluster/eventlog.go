package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/events"
)

// eventLog numbers the Events of the nodes, so that a reader continues where it was.
type eventLog struct {
	mu    sync.Mutex
	once  sync.Once        // to report that they cannot be read
	known map[string]int32 // the count by the name of the Event
	all   []drivebay.Event
}

// pollTime is the time between two requests for new Events.
const pollTime = 3 * time.Second

// ReadEvents reads the Events of the nodes and numbers those that are new or have happened again.
func (c *Cluster) ReadEvents(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := c.events.List(ctx, events.Controller)
	c.seen.add(list, c.opt.Node)
	return c.explain("list the Events", err)
}

// add adds the Events about drives and volumes, each once, and those of a node that are about none of its drives.
func (l *eventLog) add(list []client.Event, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]int32{}
	}
	var fresh []drivebay.Event
	for _, o := range list {
		e, ok := eventOf(o)
		if !ok || node != "" && o.ReportingInstance != node {
			continue
		}
		count := int32(1)
		if o.Series != nil {
			count = o.Series.Count
		}
		key := o.Namespace + "/" + o.Name
		if l.known[key] < count {
			l.known[key] = count
			fresh = append(fresh, e)
		}
	}
	slices.SortStableFunc(fresh, func(a, b drivebay.Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Kind, b.Kind)) })
	for _, e := range fresh {
		e.Seq = uint64(len(l.all)) + 1
		l.all = append(l.all, e)
	}
}

// eventOf returns the event of the machine in an Event. Events on other objects repeat it.
func eventOf(o client.Event) (drivebay.Event, bool) {
	e := drivebay.Event{At: o.EventTime.Time, Kind: drivebay.EventKind(o.Reason), Cause: o.Note}
	if o.Series != nil {
		e.At = o.Series.LastObservedTime.Time
	}
	row, _ := events.RowOf(e.Kind)
	switch o.Regarding.Kind {
	case "Drive":
		e.Drive = o.Regarding.Name
	case "Volume":
		e.Volume = o.Regarding.Name
	case "Node":
		e.Cause = "node " + o.Regarding.Name + ": " + e.Cause
		return e, row.On&events.Drive == 0
	default:
		return e, false
	}
	return e, true
}

// Events returns the events after a number. Kubernetes keeps them for an hour.
func (c *Cluster) Events(after uint64, limit int) []drivebay.Event {
	if err := c.ReadEvents(context.Background()); err != nil {
		c.seen.once.Do(func() { c.opt.Log.Error("the events of the nodes are not known", "err", err) })
	}
	return c.seen.after(after, limit)
}

func (l *eventLog) after(after uint64, limit int) []drivebay.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.all[min(after, uint64(len(l.all))):]
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return slices.Clone(out)
}

// WaitEvents returns the events after a number and waits for the first.
func (c *Cluster) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	for {
		if out := c.seen.after(after, 0); len(out) > 0 {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollTime):
		}
		if err := c.ReadEvents(ctx); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
}
