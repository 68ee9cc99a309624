package controller

import (
	"context"
	"errors"
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
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Options are the settings of a Controller.
type Options struct {
	Objects client.Volumes
	Leases  client.Leases // in the namespace of the nodes
	Log     *slog.Logger
}

// Controller is the volumes of a cluster.
type Controller struct {
	opt     Options
	objects *objects
	nodes   *nodes
	// follower is why this controller must not write; nil: it may.
	follower atomic.Pointer[string]

	mu   sync.Mutex
	busy map[string]bool // ids of volumes that a call is working on
}

// New returns a controller that must not write before Lead.
func New(opt Options) *Controller {
	c := &Controller{opt: opt, nodes: newNodes(opt.Log), busy: map[string]bool{}}
	c.objects = newObjects(c.nodes.down)
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
	all.Go(func() { client.Follow(ctx, c.opt.Log, c.objects, c.opt.Objects, "") })
	all.Go(func() {
		client.FollowLists(ctx, c.opt.Log, "leases", &coordinationv1.Lease{}, c.nodes, c.opt.Leases.ListWatch(heartbeat.Selector))
	})
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	since := map[string]time.Time{}
	for {
		select {
		case <-ctx.Done():
			all.Wait()
			return nil
		case now := <-tick.C:
			if changed := c.nodes.look(); len(changed) > 0 {
				c.objects.nodesChanged(changed)
			}
			c.sweep(ctx, since, now)
		}
	}
}

// sweep deletes refused objects that no call has come for: their claims are gone.
func (c *Controller) sweep(ctx context.Context, since map[string]time.Time, now time.Time) {
	if c.follower.Load() != nil {
		return
	}
	for _, o := range c.objects.refused(since, now) {
		if end, err := c.begin(o.Name); err == nil {
			if err := c.opt.Objects.DeleteExact(ctx, o); err == nil {
				c.opt.Log.Info("the object of a volume that was refused is deleted: nothing was made", "op", "kube", "volume", o.Name, "name", o.Spec.Name)
			}
			end()
		}
	}
}

// refused returns the objects that were refused and have not changed for sweepTime. since is what earlier calls
// saw.
func (s *objects) refused(since map[string]time.Time, now time.Time) (out []*v1alpha1.Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for _, o := range s.byID {
		if o.Status.Phase != v1alpha1.VolumeRefused || !stateOf(o).refused() {
			continue
		}
		key := string(o.UID) + o.ResourceVersion
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

// Missing returns ErrNotFound for an id without an object once all nodes have shown their volumes.
func (c *Controller) Missing(id string) error {
	if err := c.Listed(); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	return fmt.Errorf("volume %s: %w", id, drivebay.ErrNotFound)
}

// Listed returns ErrUnavailable while nodes may have volumes without objects.
func (c *Controller) Listed() error {
	if !c.objects.isSynced() {
		return fmt.Errorf("%w: the volumes of the cluster are not listed yet", drivebay.ErrUnavailable)
	}
	if why := c.nodes.unread(); len(why) > 0 {
		return fmt.Errorf("%w: %s", drivebay.ErrUnavailable, strings.Join(why[:min(len(why), 5)], "; "))
	}
	return nil
}

// Capabilities returns what the nodes can do besides plain volumes, through the controller: nothing yet.
func (c *Controller) Capabilities() drivebay.VolumeCapabilities {
	return drivebay.VolumeCapabilities{}
}

// Nodes returns the nodes that have reported, sorted.
func (c *Controller) Nodes() []string { return c.nodes.names() }

// Capacity returns the space on all nodes.
func (c *Controller) Capacity(ctx context.Context, class drivebay.Class) (drivebay.Capacity, error) {
	return c.CapacityOn(ctx, class, nil)
}

// CapacityOn returns the space on some nodes; nil: on all. A node that is down has none.
func (c *Controller) CapacityOn(_ context.Context, class drivebay.Class, names []string) (out drivebay.Capacity, err error) {
	for _, s := range c.nodes.sites(names, class) {
		if s.down != "" {
			continue
		}
		out.Available += s.room.Available
		out.Largest = max(out.Largest, s.room.Largest)
		if s.room.Smallest > 0 && (out.Smallest == 0 || s.room.Smallest < out.Smallest) {
			out.Smallest = s.room.Smallest
		}
	}
	return out, nil
}

// errNoSnapshots is the error for what the controller does not do yet.
var errNoSnapshots = fmt.Errorf("%w: the controller of a cluster has no snapshots and clones yet", drivebay.ErrNoSupport)

// CreateSnapshot refuses.
func (c *Controller) CreateSnapshot(context.Context, string, string) (drivebay.VolumeSnapshot, error) {
	return drivebay.VolumeSnapshot{}, errNoSnapshots
}

// DeleteSnapshot refuses.
func (c *Controller) DeleteSnapshot(context.Context, string) error { return errNoSnapshots }

func errorf(o *v1alpha1.Volume, kind error, format string, args ...any) error {
	return fmt.Errorf("volume %s: %w: %s", o.Name, kind, fmt.Sprintf(format, args...))
}

// apiError translates an error of the API server: a call may try again after any of them.
func apiError(what, id string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("volume %s: %s: %w", id, what, err)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("volume %s: %s: %w: %w", id, what, drivebay.ErrRefused, err)
	}
	return fmt.Errorf("volume %s: %s: %w: %w", id, what, drivebay.ErrUnavailable, err)
}

// newest returns the object of a volume as the API server has it, nil if it has none.
func (c *Controller) newest(ctx context.Context, id string) (*v1alpha1.Volume, error) {
	o, err := c.opt.Objects.Get(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, apiError("read its object", id, err)
	}
	c.objects.put(o)
	return o, nil
}

// CreateVolume requests a volume from a node, or returns the existing one. It drops the secrets of the request: an
// object would show them to everyone who may read it, and keep them in the store and the backups of the API server.
func (c *Controller) CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	if err := errors.Join(c.mayWrite(), r.Check()); err != nil {
		return drivebay.Volume{}, err
	}
	r.Secrets = nil
	if r.Source != (drivebay.Source{}) {
		return drivebay.Volume{}, fmt.Errorf("create volume %q: %w", r.Name, errNoSnapshots)
	}
	id := drivebay.VolumeID(r.Name)
	end, err := c.begin(id)
	if err != nil {
		return drivebay.Volume{}, err
	}
	defer end()
	call := creation{request: r, refused: map[string]bool{}}
	o, err := c.drive(ctx, id, &call)
	if err != nil {
		return drivebay.Volume{}, err
	}
	return translate.View(o).Volume, nil
}

// DeleteVolume requests that a node deletes a volume.
func (c *Controller) DeleteVolume(ctx context.Context, id string) error {
	if err := c.mayWrite(); err != nil {
		return err
	}
	end, err := c.begin(id)
	if err != nil {
		return err
	}
	defer end()
	_, err = c.drive(ctx, id, deletion{})
	return err
}

// ExpandVolume requests that a node grows a volume.
func (c *Controller) ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error) {
	if err := c.mayWrite(); err != nil {
		return v, false, err
	}
	end, err := c.begin(id)
	if err != nil {
		return v, false, err
	}
	defer end()
	o, err := c.drive(ctx, id, growth{r})
	if err != nil {
		return v, false, err
	}
	v = translate.View(o).Volume
	// The size of a filesystem and of an open LUKS device follows on the node (volume/internal/device, GrowsInUse).
	return v, v.HasFilesystem() || v.Encrypted(), nil
}
