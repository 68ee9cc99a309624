package cluster

import (
	"context"
	"fmt"
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
	down     map[string]string // why nodes are down
	noLeases error             // whether nodes are down is not known
	snapshot *drivebay.Snapshot
	set      *drivebay.VolumeSet
	changed  chan struct{} // closed at the next change
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

// readLeases finds out which nodes are down. Without the right to read Leases that is not known.
func (c *Cluster) readLeases(ctx context.Context) {
	o, err := c.leases.ListWatch(heartbeat.Selector).ListWithContextFunc(ctx, metav1.ListOptions{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noLeases = err; err != nil {
		return
	}
	c.down = downNodes(o.(*coordinationv1.LeaseList).Items, time.Now())
}

// downNodes returns why nodes are down.
func downNodes(leases []coordinationv1.Lease, now time.Time) map[string]string {
	out := map[string]string{}
	for i := range leases {
		l := &leases[i]
		node, _, err := heartbeat.Read(l)
		if err != nil || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		since := now.Sub(l.Spec.RenewTime.Time)
		if since > time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second+late {
			out[node] = fmt.Sprintf("node %s: the daemon has not reported for %s", node, since.Round(time.Second))
		}
	}
	return out
}

// publish makes the snapshot and the set from the objects.
func (c *Cluster) publish() {
	var drives []*v1alpha1.Drive
	var volumes []*v1alpha1.Volume
	names, _ := c.driveObjects.Names()
	for _, name := range names {
		if o, ok := c.driveObjects.Get(name); ok {
			drives = append(drives, o)
		}
	}
	names, _ = c.volumeObjects.Names()
	for _, name := range names {
		if o, ok := c.volumeObjects.Get(name); ok {
			volumes = append(volumes, o)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seq := uint64(1)
	if c.snapshot != nil {
		seq = c.snapshot.Seq + 1
	}
	now := time.Now()
	c.snapshot, c.set = snapshotOf(c.name, drives, c.down, now), volumesOf(volumes, c.down, now)
	if c.noLeases != nil {
		c.snapshot.Problems = append(c.snapshot.Problems, "whether the nodes report is not known: "+c.noLeases.Error())
	}
	c.snapshot.Seq, c.set.Seq, c.set.Drives = seq, seq, c.snapshot
	close(c.changed)
	c.changed = make(chan struct{})
}

// touch says that an object has changed.
func (c *Cluster) touch() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// start follows the objects until Close: only commands that wait need that.
func (c *Cluster) start() {
	c.follow.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		c.mu.Lock()
		c.stop = cancel
		c.mu.Unlock()
		selector := ""
		if c.opt.Node != "" {
			selector = client.Selector(c.opt.Node)
		}
		go client.Follow(ctx, c.opt.Log, c.driveObjects, c.drives, selector)
		go client.Follow(ctx, c.opt.Log, c.volumeObjects, c.volumes, selector)
		go func() {
			look := time.NewTicker(heartbeat.DefaultEvery)
			defer look.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-look.C:
					c.readLeases(ctx)
				case <-c.wake:
					time.Sleep(gather)
				}
				c.publish()
			}
		}()
	})
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
		c.start()
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
