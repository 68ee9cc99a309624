package controller

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/heartbeat"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// nodes are the Leases of the nodes.
type nodes struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	byName map[string]*node
	synced bool
}

// node is what the Lease of a node says.
type node struct {
	report   heartbeat.Report
	duration time.Duration
	renewed  time.Time // by the clock of the node
	got      time.Time // when the controller got that renewal, by its own clock
	seen     time.Time // when that renewal was, by the clock of the controller; zero: before its start
	wasDown  bool      // at the last look
	wasOld   []string  // its old objects, at the last look
}

// startSkew is by how much the clocks of a node and the controller may differ at the start of the controller. Later
// only the controller's clock counts.
const startSkew = time.Minute

// down returns why the node counts as down, "" if it does not.
func (n *node) down(name string, now time.Time) string {
	since := now.Sub(n.seen)
	limit := n.duration
	if n.seen.IsZero() { // the renewal may be old, also that of a clock that is ahead
		since, limit = now.Sub(n.renewed).Abs(), n.duration+startSkew
	}
	if since <= limit {
		return ""
	}
	return fmt.Sprintf("node %s: the daemon has not reported for %v: whether its volumes work is not known", name, since.Round(time.Second))
}

// lateTime is by how much the controller may get one renewal later than another before it counts as an old one.
const lateTime = 5 * time.Second

// renew takes a renewal. After the controller did not reach the API server for a while, it gets the renewals of that time at once: they
// are as much later than the last one as the clock of the node says. One that comes as long after the last one as it was written
// after it is new, whatever that clock says: it may have been set back.
func (n *node) renew(renewed, now time.Time, live bool) {
	first, passed, got := n.renewed.IsZero(), renewed.Sub(n.renewed), now.Sub(n.got)
	n.renewed, n.got = renewed, now
	switch {
	case first && !live: // from before the start of the controller
	case first, n.seen.IsZero(), (got - passed).Abs() <= lateTime:
		n.seen = now
	case passed > 0:
		if n.seen = n.seen.Add(passed); n.seen.After(now) {
			n.seen = now
		}
	}
}

func newNodes(log *slog.Logger) *nodes {
	return &nodes{log: log, now: time.Now, byName: map[string]*node{}}
}

// down returns why a node counts as down, "" if it does not. A node without a Lease does.
func (s *nodes) down(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byName[name]
	switch {
	case n == nil && s.synced:
		return fmt.Sprintf("node %s: the daemon has not reported: whether its volumes work is not known", name)
	case n == nil || !n.wasDown: // look decides, so that all volumes of a node change together
		return ""
	}
	return n.down(name, s.now())
}

// old returns why the object of a volume or snapshot says nothing of today, "" if it does.
func (s *nodes) old(name, id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.byName[name]; n == nil || !n.report.IsOld(id) {
		return ""
	}
	return heartbeat.OldText(name)
}

// gone reports whether a node has no Lease: a person deletes that of a node that is gone for good.
func (s *nodes) gone(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced && s.byName[name] == nil
}

// replicate reports whether a node can replicate volumes.
func (s *nodes) replicate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.byName {
		if n.report.Replicates {
			return true
		}
	}
	return false
}

// silent returns why a node may have a volume without an object, "" if none may: it is down, has not shown its volumes since it
// started, or has not reported since the object was deleted. A node that reports has shown its volumes again by then.
func (s *nodes) silent(since time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		n := s.byName[name]
		if why := n.down(name, s.now()); why != "" {
			return why
		}
		if n.report.Starting {
			return notShown(name)
		}
		if !since.IsZero() && n.seen.Before(since.Add(showTime)) {
			return silentSince(name)
		}
	}
	return ""
}

// silentOn returns why a node may have the volume of an object that was deleted, "" if it has reported since, or its Lease was
// deleted: it is gone for good.
func (s *nodes) silentOn(name string, since time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.byName[name]; {
	case n == nil:
	case n.seen.Before(since.Add(showTime)):
		return silentSince(name)
	case n.report.Starting:
		return notShown(name)
	}
	return ""
}

func notShown(name string) string {
	return fmt.Sprintf("node %s has not shown all of its volumes yet", name)
}

func silentSince(name string) string {
	return fmt.Sprintf("node %s: the daemon has not reported since the object was deleted", name)
}

// showTime is how long a node takes at most to show a volume again whose object was deleted.
const showTime = 2 * time.Second

// look returns the nodes that went down or came back since the last look.
func (s *nodes) look() (changed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range s.byName {
		why := n.down(name, s.now())
		if !slices.Equal(n.report.Old, n.wasOld) {
			n.wasOld = n.report.Old
			changed = append(changed, name)
		}
		if (why != "") != n.wasDown {
			n.wasDown = why != ""
			changed = append(changed, name)
			if n.wasDown {
				s.log.Warn("a node is down", "op", "kube", "node", name, "err", why)
			} else {
				s.log.Info("a node is back", "op", "kube", "node", name)
			}
		}
	}
	return changed
}

// names returns the names of the known nodes, sorted; ErrUnavailable before they are listed.
func (s *nodes) names() (out []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced {
		return nil, fmt.Errorf("%w: %s", drivebay.ErrUnavailable, notListed)
	}
	for name := range s.byName {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

const notListed = "the nodes of the cluster are not listed yet"

// unread returns why volumes may exist that have no objects.
func (s *nodes) unread() (why []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.synced:
		return []string{notListed}
	case len(s.byName) == 0:
		return []string{"no node has reported yet"}
	}
	for name, n := range s.byName {
		if !n.report.Mirrored {
			why = append(why, notShown(name))
		}
	}
	slices.Sort(why)
	return why
}

// site is a node as a place for a new volume.
type site struct {
	name  string
	down  string
	room  drivebay.Capacity
	whole bool // whether the room is that of all its drives
}

// sites returns some of the nodes, in this order, with the room for a class; nil: all.
func (s *nodes) sites(names []string, c drivebay.Class) []site {
	s.mu.Lock()
	defer s.mu.Unlock()
	if names == nil {
		for name := range s.byName {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	var out []site
	for _, name := range names {
		if n := s.byName[name]; n != nil {
			out = append(out, site{name, n.down(name, s.now()), n.report.Capacity(c), n.report.Whole})
		}
	}
	return out
}

// The methods of cache.ReflectorStore.

func (s *nodes) Add(o any) error    { s.put(o.(*coordinationv1.Lease), true); return nil }
func (s *nodes) Update(o any) error { s.put(o.(*coordinationv1.Lease), true); return nil }
func (s *nodes) Resync() error      { return nil }

func (s *nodes) Delete(o any) error {
	if name, _, _ := heartbeat.Read(o.(*coordinationv1.Lease)); name != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.byName, name)
	}
	return nil
}

// Replace takes a complete list of the Leases. A renewal that it shows for the first time may be old.
func (s *nodes) Replace(list []any, _ string) error {
	there := map[string]bool{}
	for _, o := range list {
		there[s.put(o.(*coordinationv1.Lease), false)] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.byName {
		if !there[name] {
			delete(s.byName, name)
		}
	}
	s.synced = true
	return nil
}

// put takes a Lease. live is false for one out of a list, which may have been renewed long ago.
func (s *nodes) put(l *coordinationv1.Lease, live bool) (name string) {
	name, report, err := heartbeat.Read(l)
	if err != nil {
		s.log.Warn("the Lease of a node cannot be read", "op", "kube", "err", err)
	}
	if name == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.byName[name]
	if !known {
		n = &node{}
		s.byName[name] = n
	}
	n.report, n.duration = report, 40*time.Second
	if l.Spec.LeaseDurationSeconds != nil {
		n.duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	if l.Spec.RenewTime != nil && !l.Spec.RenewTime.Time.Equal(n.renewed) {
		n.renew(l.Spec.RenewTime.Time, s.now(), live)
	}
	return name
}
