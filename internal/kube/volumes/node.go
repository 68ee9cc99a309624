package volumes

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
)

// Engine is what the node needs of the volume engine.
type Engine interface {
	Volumes() *drivebay.VolumeSet
	WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error)
	// Listed returns an error while the set may lack volumes.
	Listed() error
	CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error)
	DeleteVolume(ctx context.Context, id string) error
	ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error)
	// RestoreName gives a volume that was found without its name what others remember of it.
	RestoreName(id string, was drivebay.Volume) error
}

// Options are the settings of a Node.
type Options struct {
	Name    string // of the node
	Engine  Engine
	Objects client.Volumes
	Log     *slog.Logger
	// Mirrored gets whether all volumes of the node have objects, once a second; it may be nil.
	Mirrored func(bool)
}

const (
	workers = 16
	// callTime is how long a call of the engine may take before the node looks at the object again. The
	// engine continues its work after that, and the next call finds it.
	callTime = time.Minute
	// gatherTime is how long changes of a volume are gathered before they are written: a volume that is staged is
	// published a moment later.
	gatherTime = 500 * time.Millisecond
	// reportTime is the time between two looks at whether all volumes have objects.
	reportTime = time.Second
	// apiRetry is how long a failed request to the API server waits for its repetition.
	apiRetry = 2 * time.Second
)

// retries is the wait between two attempts of a call that failed for a cause that ends by itself.
var retries = backoff.Backoff{First: time.Second, Most: 30 * time.Second}

// Node shows the volumes of an engine as objects and does what the objects request.
type Node struct {
	opt     Options
	objects *client.Cache[v1alpha1.Volume, *v1alpha1.Volume]
	queue   workqueue.TypedDelayingInterface[string]

	mu     sync.Mutex
	memory map[string]*memory // by id
}

// memory is what is remembered of a volume, only to try and write less often.
type memory struct {
	failed int       // attempts in a row that failed
	next   time.Time // when the next one is due
	pace   pace.Pace
	// sent is a status that the API server stored differently, as got: its schema is older than this daemon.
	sent, got *v1alpha1.VolumeStatus
	deleted   bool   // the engine had the volume in removal, and then no more
	foreign   string // the node that has the object; reported once
}

// New returns the part of a node.
func New(opt Options) *Node {
	n := &Node{opt: opt, queue: workqueue.NewTypedDelayingQueue[string](), memory: map[string]*memory{}}
	n.objects = client.NewCache[v1alpha1.Volume](n.queue.Add)
	return n
}

// Run works until ctx ends. Calls of the engine that are under way are canceled.
func (n *Node) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { client.Follow(ctx, n.opt.Log, n.objects, n.opt.Objects, client.Selector(n.opt.Name)) })
	all.Go(func() { n.follow(ctx) })
	for range workers {
		all.Go(func() { n.work(ctx) })
	}
	for ctx.Err() == nil {
		n.report()
		select {
		case <-ctx.Done():
		case <-time.After(reportTime):
		}
	}
	n.queue.ShutDown()
	all.Wait()
	return nil
}

// follow queues the volumes that changed in the engine.
func (n *Node) follow(ctx context.Context) {
	was := map[string]*drivebay.VolumeView{}
	for seq := uint64(0); ; {
		set, err := n.opt.Engine.WaitVolumes(ctx, seq)
		if err != nil {
			return
		}
		seq = set.Seq
		is := make(map[string]*drivebay.VolumeView, len(set.Volumes))
		for _, v := range set.Volumes {
			if is[v.ID] = v; was[v.ID] == v {
				continue
			}
			if was[v.ID] == nil {
				n.remember(v.ID, func(m *memory) { m.deleted = false })
			}
			n.queue.AddAfter(v.ID, gatherTime)
		}
		for id, v := range was {
			if is[id] == nil {
				if v.CSIStatus == drivebay.CSIRemoving {
					n.remember(id, func(m *memory) { m.deleted = true })
				}
				n.queue.Add(id)
			}
		}
		was = is
	}
}

func (n *Node) work(ctx context.Context) {
	for {
		id, ended := n.queue.Get()
		if ended {
			return
		}
		after, err := n.reconcile(ctx, id)
		if err != nil && ctx.Err() == nil {
			n.opt.Log.Warn("the object of a volume is not up to date", "op", "kube", "volume", id, "err", err)
			after = apiRetry
		}
		n.queue.Done(id)
		if after > 0 {
			n.queue.AddAfter(id, after)
		}
	}
}

// report tells whether all volumes have objects.
func (n *Node) report() {
	if n.opt.Mirrored == nil {
		return
	}
	set := n.opt.Engine.Volumes()
	mirrored := set.Seq > 0 && n.listed() && n.opt.Engine.Listed() == nil
	for _, v := range set.Volumes {
		if !mirrored {
			break
		}
		mirrored = !wants(v) || n.object(v.ID) != nil || n.memoryOf(v.ID).foreign != ""
	}
	n.opt.Mirrored(mirrored)
}

func (n *Node) remember(id string, f func(*memory)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.memory[id]
	if m == nil {
		m = &memory{}
		n.memory[id] = m
	}
	f(m)
}

func (n *Node) memoryOf(id string) (out memory) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.memory[id]; m != nil {
		out = *m
	}
	return out
}

func (n *Node) forget(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory, id)
}

// object returns the object of a volume, nil if the API server has none.
func (n *Node) object(id string) *v1alpha1.Volume {
	o, _ := n.objects.Get(id)
	return o
}

// listed reports whether the objects of the node are known.
func (n *Node) listed() bool {
	_, listed := n.objects.Names()
	return listed
}

// view returns the volume of the engine, nil if it has none.
func (n *Node) view(id string) *drivebay.VolumeView {
	v, _ := n.opt.Engine.Volumes().Get(id)
	return v
}

// reconcile does the next thing for a volume. after is when to look at it again; 0: after the next change.
func (n *Node) reconcile(ctx context.Context, id string) (after time.Duration, err error) {
	if set := n.opt.Engine.Volumes(); set.Seq == 0 || !n.listed() {
		return gatherTime, nil
	}
	o, v := n.object(id), n.view(id)
	switch {
	case o == nil && (v == nil || !wants(v)):
		if v == nil {
			n.forget(id)
		}
		return 0, nil
	case o == nil:
		return 0, n.mirror(ctx, v)
	case o.Spec.Node != n.opt.Name: // its label is wrong
		return 0, nil
	case v == nil && abandoned(o, n.memoryOf(id).deleted, n.opt.Engine.Listed() == nil):
		return 0, n.remove(ctx, o)
	}
	if was, ok := remembered(o, v); ok {
		if err := n.opt.Engine.RestoreName(id, was); err != nil {
			return 0, fmt.Errorf("restore the name %q: %w", was.Name, err)
		}
		v = n.view(id)
		n.opt.Log.Info("a volume that was found on its drives has its name again", "op", "kube", "volume", id, "name", was.Name)
	}
	do := requested(o, v)
	if do == callNone {
		return n.write(ctx, o, answer(o, v, outcome{listed: n.opt.Engine.Listed() == nil}, time.Now()))
	}
	due, again := wait(o, n.memoryOf(id).next, time.Now())
	switch {
	case !again:
		return n.write(ctx, o, answer(o, v, outcome{listed: n.opt.Engine.Listed() == nil}, time.Now()))
	case due > 0:
		after, err := n.write(ctx, o, answer(o, v, outcome{listed: n.opt.Engine.Listed() == nil}, time.Now()))
		if after == 0 || due < after {
			after = due
		}
		return after, err
	}
	return n.call(ctx, o, do)
}

// call does what an object requests and writes the answer.
func (n *Node) call(ctx context.Context, o *v1alpha1.Volume, do call) (after time.Duration, err error) {
	id := o.Name
	if do != callExpand { // the object may have been deleted or changed a moment ago: ask rather than make or delete for nothing
		newest, err := n.opt.Objects.Get(ctx, id)
		switch {
		case apierrors.IsNotFound(err) || err == nil && newest.UID != o.UID:
			return apiRetry, nil // the reflector delivers it
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case newest.Generation != o.Generation:
			n.objects.Put(newest)
			return 0, nil
		}
	}
	failed := n.run(ctx, o, do)
	if ctx.Err() != nil {
		return 0, nil // the next start continues
	}
	n.remember(id, func(m *memory) {
		if failed == nil {
			m.failed, m.next = 0, time.Time{}
			return
		}
		m.failed++
		m.next = time.Now().Add(retries.Wait(m.failed))
	})
	if failed != nil {
		n.opt.Log.Info("the request in the object of a volume failed", "op", "kube", "volume", id, "name", o.Spec.Name, "err", failed)
	}
	if do == callDelete && failed == nil {
		return 0, n.remove(ctx, o)
	}
	if _, err = n.write(ctx, o, answer(o, n.view(id), outcome{do, failed, n.opt.Engine.Listed() == nil}, time.Now())); err != nil {
		return 0, err
	}
	if failed != nil && translate.Transient(translate.ErrorOf(failed)) {
		return retries.Wait(n.memoryOf(id).failed), nil
	}
	return 0, nil
}

// run calls the engine.
func (n *Node) run(ctx context.Context, o *v1alpha1.Volume, do call) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	switch do {
	case callCreate:
		r, err := translate.RequestOf(&o.Spec)
		if err == nil && drivebay.VolumeID(r.Name) != o.Name {
			err = fmt.Errorf("volume %s: %w: the name of the object does not follow from spec.name", o.Name, drivebay.ErrInvalid)
		}
		if err == nil {
			_, err = n.opt.Engine.CreateVolume(ctx, r)
		}
		return err
	case callDelete:
		return n.opt.Engine.DeleteVolume(ctx, o.Name)
	}
	_, _, err := n.opt.Engine.ExpandVolume(ctx, o.Name, translate.SizeOf(o.Spec.Size))
	return err
}

// mirror makes the object of a volume that has none.
func (n *Node) mirror(ctx context.Context, v *drivebay.VolumeView) error {
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: v.ID, Labels: client.Labels(n.opt.Name)}, Spec: translate.SpecOfVolume(&v.Volume, n.opt.Name)}
	made, err := n.opt.Objects.Create(ctx, o, client.NodeOwner)
	if apierrors.IsAlreadyExists(err) {
		return n.conflict(ctx, v)
	}
	if err != nil {
		return fmt.Errorf("make: %w", err)
	}
	n.objects.Put(made)
	return nil
}

// conflict finds out why a volume has an object that the node does not see.
func (n *Node) conflict(ctx context.Context, v *drivebay.VolumeView) error {
	o, err := n.opt.Objects.Get(ctx, v.ID)
	switch {
	case apierrors.IsNotFound(err):
		n.queue.Add(v.ID)
		return nil
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case o.Spec.Node == n.opt.Name: // it was made a moment ago, or lost its label
		if o.Labels[client.NodeLabel] != client.Labels(n.opt.Name)[client.NodeLabel] {
			if o, err = n.opt.Objects.Apply(ctx, &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: v.ID, UID: o.UID, Labels: client.Labels(n.opt.Name)}}, client.NodeOwner); err != nil {
				return fmt.Errorf("label: %w", err)
			}
		}
		n.objects.Put(o)
		return nil
	}
	if n.memoryOf(v.ID).foreign != o.Spec.Node {
		n.remember(v.ID, func(m *memory) { m.foreign = o.Spec.Node })
		n.opt.Log.Error("a volume of this node has the object of another node, and is not shown in the cluster: find out which of the two is in use", "op", "kube", "volume", v.ID, "name", v.Name, "node", o.Spec.Node)
	}
	return nil
}

// remove deletes the object of a volume that is gone.
func (n *Node) remove(ctx context.Context, o *v1alpha1.Volume) error {
	if err := n.opt.Objects.Delete(ctx, o.Name, o.UID); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete: %w", err)
	}
	n.objects.Drop(o.Name)
	n.forget(o.Name)
	return nil
}

// write writes a status unless the object has it. A status that is no answer may have to wait: after is how long.
func (n *Node) write(ctx context.Context, o *v1alpha1.Volume, s v1alpha1.VolumeStatus) (after time.Duration, err error) {
	m, now := n.memoryOf(o.Name), time.Now()
	u := urgency(&o.Status, &s)
	if u == pace.None || m.sent != nil && urgency(m.sent, &s) == pace.None && urgency(m.got, &o.Status) == pace.None {
		return 0, nil
	}
	if after := m.pace.Wait(u, now); after > 0 {
		return after, nil
	}
	n.remember(o.Name, func(m *memory) { m.pace.Wrote(u, now) }) // one that fails may have been made
	written, err := n.opt.Objects.ApplyStatus(ctx, &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID}, Status: s}, client.NodeOwner)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // deleted meanwhile
		return apiRetry, nil
	case err != nil:
		return 0, fmt.Errorf("write the status: %w", err)
	}
	if urgency(&written.Status, &s) != pace.None {
		n.remember(o.Name, func(m *memory) { m.sent, m.got = s.DeepCopy(), written.Status.DeepCopy() })
	}
	n.objects.Put(written)
	return 0, nil
}
