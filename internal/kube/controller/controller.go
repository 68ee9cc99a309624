package controller

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/heartbeat"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// Options are the settings of a Controller.
type Options struct {
	Objects   client.Volumes
	Snapshots client.Snapshots
	Leases    client.Leases // in the namespace of the nodes
	Log       *slog.Logger
}

// Controller is the volumes of a cluster.
type Controller struct {
	opt       Options
	objects   *objects
	volumes   requests[*v1alpha1.Volume]
	snapshots requests[*v1alpha1.Snapshot]
	nodes     *nodes
	// follower is why this controller must not write; nil: it may.
	follower atomic.Pointer[string]

	mu   sync.Mutex
	busy map[string]bool // ids of volumes that a call is working on
}

// New returns a controller that must not write before Lead.
func New(opt Options) *Controller {
	c := &Controller{opt: opt, nodes: newNodes(opt.Log), busy: map[string]bool{}}
	c.objects = newObjects(c.nodes.down, c.nodes.gone)
	c.objects.old = c.nodes.old
	c.volumes, c.snapshots = c.volumeRequests(), c.snapshotRequests()
	c.Follow("no leader is elected yet")
	return c
}

// Lead permits the controller to write.
func (c *Controller) Lead() { c.follower.Store(nil) }

// Follow forbids the controller to write, and says why.
func (c *Controller) Follow(why string) { c.follower.Store(&why) }

const (
	// lookTime is the time between two looks at which nodes are down.
	lookTime = 5 * time.Second
	// sweepTime is how long an object that its node has refused stays if no call comes for it.
	sweepTime = 10 * time.Minute
)

// Run follows the objects until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { client.Follow(ctx, c.opt.Log, c.objects.store, c.opt.Objects, "") })
	all.Go(func() { client.Follow(ctx, c.opt.Log, c.objects.snapshots, c.opt.Snapshots, "") })
	all.Go(func() {
		client.FollowLists(ctx, c.opt.Log, "leases", &coordinationv1.Lease{}, c.nodes, c.opt.Leases.ListWatch(heartbeat.Selector))
	})
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	volumes, snapshots := map[string]time.Time{}, map[string]time.Time{}
	for {
		select {
		case <-ctx.Done():
			all.Wait()
			return nil
		case now := <-tick.C:
			if changed := c.nodes.look(); len(changed) > 0 {
				c.objects.nodesChanged(changed)
			}
			c.volumes.sweep(ctx, volumes, now)
			c.snapshots.sweep(ctx, snapshots, now)
			c.moveObjects(ctx)
		}
	}
}

// sweep deletes refused objects that no call has come for: their claims are gone.
func (m *requests[P]) sweep(ctx context.Context, since map[string]time.Time, now time.Time) {
	if m.c.follower.Load() != nil {
		return
	}
	for _, o := range m.refused(since, now) {
		if end, err := m.c.begin(o.GetName()); err == nil {
			if err := m.api.DeleteExact(ctx, o); err == nil {
				m.c.opt.Log.Info("the object of a "+m.kind+" that was refused is deleted: nothing was made", "op", "kube", m.kind, o.GetName())
			}
			end()
		}
	}
}

// refused returns the objects that were refused and have not changed for sweepTime. since is what earlier calls
// saw.
func (m *requests[P]) refused(since map[string]time.Time, now time.Time) (out []P) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	seen := map[string]bool{}
	for _, o := range m.store.byID {
		if s := stateOf(m.asked(o)); !s.refused() {
			continue
		}
		key := string(o.GetUID()) + o.GetResourceVersion()
		if seen[key] = true; since[key].IsZero() {
			since[key] = now
		} else if now.Sub(since[key]) > sweepTime {
			out = append(out, o)
		}
	}
	for key := range since {
		if !seen[key] {
			delete(since, key)
		}
	}
	return out
}

// begin reserves a volume for a call of this controller.
func (c *Controller) begin(id string) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[id] {
		return nil, fmt.Errorf("volume %s: %w", id, drivebay.ErrPending)
	}
	c.busy[id] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.busy, id)
	}, nil
}

// mayWrite returns why calls that change volumes are not served here.
func (c *Controller) mayWrite() error {
	switch why := c.follower.Load(); {
	case why != nil:
		return fmt.Errorf("this controller does not lead: %w: %s", drivebay.ErrUnavailable, *why)
	case !c.objects.isSynced():
		return fmt.Errorf("%w: the volumes of the cluster are not listed yet", drivebay.ErrUnavailable)
	}
	return nil
}

// Volumes returns the newest set.
func (c *Controller) Volumes() *drivebay.VolumeSet { return c.objects.volumes() }

// Unread returns why volumes may be unknown; ready is false until the objects were listed and this controller
// leads: sidecars wait for that.
func (c *Controller) Unread() (why []string, ready bool) {
	if err := c.mayWrite(); err != nil {
		return []string{err.Error()}, false
	}
	return c.nodes.unread(), true
}

// Missing returns ErrNotFound for an id without an object once all nodes have shown their volumes, and none is down that may
// have it: a person may have deleted the object alone.
func (c *Controller) Missing(id string) error {
	if err := c.shown(); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	if isID(id) { // no volume or snapshot has another one
		at := c.objects.lostAt(id)
		if at.IsZero() {
			at = c.objects.snapshots.lostAt(id)
		}
		if why := c.nodes.silent(at); why != "" {
			return fmt.Errorf("volume %s: %w: it has no object, and may exist: %s", id, drivebay.ErrUnavailable, why)
		}
	}
	return fmt.Errorf("volume %s: %w", id, drivebay.ErrNotFound)
}

// Listed returns ErrUnavailable while nodes may have volumes without objects: those that they have not shown yet, and those
// whose objects were deleted while they were down.
func (c *Controller) Listed() error {
	if err := c.shown(); err != nil {
		return err
	}
	if why := cmp.Or(c.objects.lostSilent(c.nodes.silentOn), c.objects.snapshots.lostSilent(c.nodes.silentOn)); why != "" {
		return fmt.Errorf("%w: %s", drivebay.ErrUnavailable, why)
	}
	return nil
}

// shown returns ErrUnavailable until all nodes have shown their volumes.
func (c *Controller) shown() error {
	if !c.objects.isSynced() {
		return fmt.Errorf("%w: the volumes of the cluster are not listed yet", drivebay.ErrUnavailable)
	}
	if why := c.nodes.unread(); len(why) > 0 {
		return fmt.Errorf("%w: %s", drivebay.ErrUnavailable, strings.Join(why[:min(len(why), 5)], "; "))
	}
	return nil
}

// Capabilities returns what nodes can do besides plain volumes. A sidecar asks once, before it is known what nodes there
// will be: a node without LVM refuses the call.
func (c *Controller) Capabilities() drivebay.VolumeCapabilities {
	return drivebay.VolumeCapabilities{Snapshots: true}
}

// Nodes returns the nodes that have reported, sorted; ErrUnavailable before they are listed.
func (c *Controller) Nodes() ([]string, error) { return c.nodes.names() }

// Capacity returns the space on all nodes.
func (c *Controller) Capacity(ctx context.Context, class drivebay.Class) (drivebay.Capacity, error) {
	return c.CapacityOn(ctx, class, nil)
}

// CapacityOn returns the space on some nodes; nil: on all. A node that is down has none. It returns ErrUnavailable if there is
// no space on the drives that are read, and others may have some.
func (c *Controller) CapacityOn(_ context.Context, class drivebay.Class, names []string) (out drivebay.Capacity, err error) {
	if _, err := c.nodes.names(); err != nil {
		return out, err
	}
	var unread []string
	for _, s := range c.nodes.sites(names, class) {
		if s.down != "" {
			continue
		}
		if !s.whole {
			unread = append(unread, s.name)
		}
		out.Available += s.room.Available
		out.Largest = max(out.Largest, s.room.Largest)
		if s.room.Smallest > 0 && (out.Smallest == 0 || s.room.Smallest < out.Smallest) {
			out.Smallest = s.room.Smallest
		}
	}
	if out.Largest == 0 && len(unread) > 0 {
		return drivebay.Capacity{}, fmt.Errorf("%w: the nodes %s have not read all of their drives yet", drivebay.ErrUnavailable, some(unread))
	}
	return out, nil
}
