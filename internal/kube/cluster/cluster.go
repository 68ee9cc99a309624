package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/heartbeat"
)

// Cluster is the drives and volumes of the nodes of a cluster.
type Cluster struct {
	nodeOnly
	volumeRequests
	opt        Options
	name, host string // of the context, of the API server
	drives     client.Drives
	volumes    client.Volumes
	events     client.Events
	leases     client.Leases

	driveObjects  *client.Cache[v1alpha1.Drive, *v1alpha1.Drive]
	volumeObjects *client.Cache[v1alpha1.Volume, *v1alpha1.Volume]
	follow        sync.Once
	stop          context.CancelFunc
	wake          chan struct{}

	mu       sync.Mutex
	down     map[string]string // why nodes are down whose Lease has ended
	leased   map[string]bool   // the nodes that have a Lease; nil: not known
	reports  reports           // of the nodes
	silent   map[string]string // why nodes count as down in what is shown
	noLeases error             // whether nodes are down is not known
	heard    time.Time         // when the API server has last shown the objects
	away     error             // why it does not answer; nil: it does
	refused  map[string]error  // why it does not list objects, by the name of the resource
	version  uint64            // grows with everything that is known
	snapshot *drivebay.Snapshot
	set      *drivebay.VolumeSet
	machines map[string]*drivebay.Hardware // by the name of the node
	changed  chan struct{}                 // closed at the next change
	seen     eventLog
	healing  map[string]wished // repairs that were requested and have not ended, by id
}

const (
	// nodeDown is the reason of a volume whose node does not report, as the controller gives it.
	nodeDown = "NodeDown"
	// page is the number of objects of one request.
	page = 1000
	// late is how long after the end of its Lease a node counts as down: the clocks of two machines differ.
	late = 30 * time.Second
	// gather is how long changes are gathered before they are shown.
	gather = 200 * time.Millisecond
	// awayTime is the time between two attempts to reach an API server that does not answer.
	awayTime = 2 * time.Second
)

// read reads all objects once, so that the errors of a person's first request are seen.
func (c *Cluster) read(ctx context.Context) error {
	list := metav1.ListOptions{Limit: page}
	if c.opt.Node != "" {
		list.LabelSelector = client.Selector(c.opt.Node)
	}
	var drives, volumes []any
	for list.Continue = ""; ; {
		l, err := c.drives.List(ctx, list)
		if err != nil {
			return c.explain("list the Drives", err)
		}
		for i := range l.Items {
			drives = append(drives, &l.Items[i])
		}
		if list.Continue = l.Continue; list.Continue == "" {
			_ = c.driveObjects.Replace(drives, l.ResourceVersion) // it never fails
			break
		}
	}
	for list.Continue = ""; ; {
		l, err := c.volumes.List(ctx, list)
		if err != nil {
			return c.explain("list the Volumes", err)
		}
		for i := range l.Items {
			volumes = append(volumes, &l.Items[i])
		}
		if list.Continue = l.Continue; list.Continue == "" {
			_ = c.volumeObjects.Replace(volumes, l.ResourceVersion)
			break
		}
	}
	if c.opt.Node != "" && len(drives)+len(volumes) == 0 {
		return fmt.Errorf("node %q: %w: no Drive and no Volume is of this node (`kubectl get drives`)", c.opt.Node, drivebay.ErrNotFound)
	}
	c.readLeases(ctx)
	c.publish()
	return nil
}

// readLeases finds out which nodes are down, and whether the API server answers. Without the right to read Leases it is not
// known which nodes are. changed is false if the answer is that of before.
func (c *Cluster) readLeases(ctx context.Context) (changed bool) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	o, err := c.leases.ListWatch(heartbeat.Selector).ListWithContextFunc(ctx, metav1.ListOptions{})
	c.mu.Lock()
	defer c.mu.Unlock()
	down, leased, old, known, there := c.down, c.leased, c.reports, c.noLeases == nil, c.away == nil
	c.noLeases = err
	if c.away = err; err == nil || apierrors.IsForbidden(err) {
		c.away = nil
		if cmp.Or(c.refused[resourceDrives], c.refused[resourceVolumes]) == nil {
			c.heard = time.Now()
		}
	}
	if err == nil {
		leases := o.(*coordinationv1.LeaseList).Items
		c.down, c.leased = downNodes(leases, time.Now())
		c.reports = reportsOf(leases)
	}
	return known != (c.noLeases == nil) || there != (c.away == nil) || !maps.Equal(down, c.down) || !maps.Equal(leased, c.leased) || !old.sameOld(c.reports)
}

// downNodes returns why nodes are down, and which nodes have a Lease.
func downNodes(leases []coordinationv1.Lease, now time.Time) (out map[string]string, leased map[string]bool) {
	out, leased = map[string]string{}, map[string]bool{}
	for i := range leases {
		l := &leases[i]
		node, _, err := heartbeat.Read(l)
		if err != nil || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		leased[node] = true
		since, limit := now.Sub(l.Spec.RenewTime.Time), time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second+late
		switch {
		case since > limit:
			out[node] = fmt.Sprintf("node %s: the daemon has not reported for %s", node, drivebay.DurationText(since))
		case -since > limit: // it may have been down since
			out[node] = fmt.Sprintf("node %s: its clock is %s ahead of this machine: whether its daemon reports is not known", node, drivebay.DurationText(-since))
		}
	}
	return out, leased
}

// silentNodes returns why nodes count as down: their Lease has ended, or they have objects and no Lease says that their daemon
// runs. leased is nil if the Leases are not known.
func silentNodes(down map[string]string, leased, nodes map[string]bool) map[string]string {
	out := map[string]string{}
	maps.Copy(out, down)
	for node := range nodes {
		if leased != nil && !leased[node] {
			out[node] = fmt.Sprintf("node %s: no Lease says that its daemon runs", node)
		}
	}
	return out
}

// nodesOf returns the nodes that objects are of.
func nodesOf(drives []*v1alpha1.Drive, volumes []*v1alpha1.Volume) map[string]bool {
	out := map[string]bool{}
	for _, o := range drives {
		if o.Status.Node != "" { // the node has written it
			out[o.Status.Node] = true
		}
	}
	for _, o := range volumes {
		out[o.Spec.Node] = true
	}
	return out
}

// publish makes the snapshot and the set from the objects.
func (c *Cluster) publish() {
	var drives []*v1alpha1.Drive
	var volumes []*v1alpha1.Volume
	names, listed := c.driveObjects.Names()
	for _, name := range names {
		if o, ok := c.driveObjects.Get(name); ok {
			drives = append(drives, o)
		}
	}
	names, also := c.volumeObjects.Names()
	for _, name := range names {
		if o, ok := c.volumeObjects.Get(name); ok {
			volumes = append(volumes, o)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	if !listed || !also {
		return // a part is no picture of the cluster
	}
	seq, now := c.snapshot.Seq+1, time.Now()
	c.machines = machinesOf(drives)
	c.silent = silentNodes(c.down, c.leased, nodesOf(drives, volumes))
	c.snapshot, c.set = snapshotOf(c.name, drives, c.silent, now), volumesOf(volumes, c.silent, now)
	c.reports.markOld(c.snapshot, c.set)
	if c.noLeases != nil && c.away == nil {
		c.snapshot.Problems = append(c.snapshot.Problems, "whether the nodes report is not known: "+c.noLeases.Error())
	}
	c.snapshot.Seq, c.set.Seq, c.set.Drives = seq, seq, c.snapshot
	close(c.changed)
	c.changed = make(chan struct{})
}

// The resources that are followed.
const (
	resourceDrives  = "drives"
	resourceVolumes = "volumes"
)

// answered returns what is called with each answer to a request for the objects of a resource.
func (c *Cluster) answered(resource string) func(error) {
	return func(err error) {
		if err != nil && !refuses(err) { // the request for the Leases finds out whether the API server answers
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if fmt.Sprint(err) != fmt.Sprint(c.refused[resource]) {
			c.touch()
		}
		c.refused[resource] = err
	}
}

// refuses reports whether an error is the API server's answer that it does not show objects: to this account, or at all.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// touch says that an object has changed.
func (c *Cluster) touch() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Follow follows the objects until Close: only commands that wait, and the page, need that.
func (c *Cluster) Follow() {
	c.follow.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		c.mu.Lock()
		c.stop = cancel
		c.mu.Unlock()
		selector := ""
		if c.opt.Node != "" {
			selector = client.Selector(c.opt.Node)
		}
		go client.FollowLists(ctx, c.opt.Log, resourceDrives, &v1alpha1.Drive{}, c.driveObjects, client.Hear(c.drives.ListWatch(selector), c.answered(resourceDrives)))
		go client.FollowLists(ctx, c.opt.Log, resourceVolumes, &v1alpha1.Volume{}, c.volumeObjects, client.Hear(c.volumes.ListWatch(selector), c.answered(resourceVolumes)))
		go func() {
			for look := time.After(0); ; {
				select {
				case <-ctx.Done():
					return
				case <-look:
					changed := c.readLeases(ctx)
					if look = time.After(c.lookTime()); !changed {
						continue
					}
				case <-c.wake:
					time.Sleep(gather)
				}
				c.publish()
			}
		}()
	})
}

// lookTime is how long after a look at the Leases the next one is.
func (c *Cluster) lookTime() time.Duration {
	if _, why, _ := c.Heard(); why != "" {
		return awayTime
	}
	return heartbeat.DefaultEvery
}

// Heard returns when the API server has last listed the objects, and why it does not now; "": it does. refused: it answers,
// and does not show the objects to this account.
func (c *Cluster) Heard() (at time.Time, why string, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := cmp.Or(c.away, c.refused[resourceDrives], c.refused[resourceVolumes])
	if err == nil {
		return c.heard, "", false
	}
	if request := (*url.Error)(nil); errors.As(err, &request) { // not which request it was
		return c.heard, request.Err.Error(), false
	}
	return c.heard, err.Error(), refuses(err)
}

// Down returns why nodes are down, by their names.
func (c *Cluster) Down() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.silent)
}

// Machines returns which machine each node is, by the names of the nodes.
func (c *Cluster) Machines() map[string]*drivebay.Hardware {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machines
}

// Version returns a number that grows with everything that is known of the cluster.
func (c *Cluster) Version() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Close ends the requests that follow the objects.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
}

// now returns what is known, and a channel that is closed when it changes.
func (c *Cluster) now() (*drivebay.Snapshot, *drivebay.VolumeSet, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot, c.set, c.changed
}

// Snapshot returns the drives.
func (c *Cluster) Snapshot() *drivebay.Snapshot { s, _, _ := c.now(); return s }

// Volumes returns the volumes.
func (c *Cluster) Volumes() *drivebay.VolumeSet { _, set, _ := c.now(); return set }

// wait waits until the number differs from after.
func (c *Cluster) wait(ctx context.Context, after uint64) error {
	for {
		s, _, changed := c.now()
		if s.Seq != after {
			return nil
		}
		c.Follow()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Wait returns the newest snapshot once its number differs from after.
func (c *Cluster) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	err := c.wait(ctx, after)
	return c.Snapshot(), err
}

// WaitVolumes does the same with the volumes.
func (c *Cluster) WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	err := c.wait(ctx, after)
	return c.Volumes(), err
}

// object returns the newest object of a drive.
func (c *Cluster) object(ctx context.Context, name string) (*v1alpha1.Drive, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	o, err := c.drives.Get(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("drive %s: %w", name, drivebay.ErrNotFound)
	}
	return o, c.explain("read Drive "+name, err)
}
