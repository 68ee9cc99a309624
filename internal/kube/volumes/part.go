package volumes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

type urgency = pace.Urgency

// wanted is a pointer to an object of Kubernetes.
type wanted interface {
	comparable
	metav1.Object
}

// kind is what differs between the objects of volumes and of snapshots: P is the object, V what the engine has; its
// zero value is nothing.
type kind[P wanted, V comparable] struct {
	api interface {
		Get(ctx context.Context, name string) (P, error)
		Create(ctx context.Context, object P, owner string) (P, error)
		Apply(ctx context.Context, object P, owner string) (P, error)
		ApplyStatus(ctx context.Context, object P, owner string) (P, error)
		Delete(ctx context.Context, name string, uid types.UID) error
	}
	asked     func(P) translate.Asked
	find      func(id string) V                      // what the engine has
	shown     func(V) bool                           // whether that is to have an object
	requested func(P, V) call                        // the call that an object requests
	run       func(context.Context, P, call) outcome // calls the engine
	room      chan struct{}                          // one place for each task that is done at once
	restore   func(P, V) (V, error)                  // gives the engine what it lost and the object has
	answer    func(P, V, outcome, time.Time) P       // the object with its status after a look at the engine, and after the call if there was one
	urgency   func(was, want P) urgency              // how soon a status has to be written in place of another
	abandoned func(o P, deleted, listed bool) bool   // whether the object of what the engine does not have is to be deleted
	flaps     func(P, V) bool                        // whether an object comes and goes with a drive; one of both is nothing
	mirror    func(V) P                              // the object of what no object has requested
	label     func(metav1.ObjectMeta) P              // an object without a spec
}

// objectsOf are the newest objects of a kind that the node knows.
type objectsOf[P wanted] interface {
	Get(name string) (P, bool)
	Listed() bool // whether the objects of the node are known
	Put(P)
	Drop(name string)
}

// part does the work for one kind of objects.
type part[P wanted, V comparable] struct {
	kind[P, V]
	opt     *Options
	objects objectsOf[P]
	queue   workqueue.TypedDelayingInterface[string]

	mu     sync.Mutex
	memory map[string]*memory[P] // by id
	// refusals counts, by id, how often in a row the API server has refused what the node wrote.
	refusals map[string]int
	behind   map[string]time.Time // since when, by id, an object is not written
}

func newPart[P wanted, V comparable](opt *Options, k kind[P, V]) *part[P, V] {
	return &part[P, V]{kind: k, opt: opt, queue: workqueue.NewTypedDelayingQueue[string](), memory: map[string]*memory[P]{}, refusals: map[string]int{}, behind: map[string]time.Time{}}
}

const (
	workers = 16
	// callTime is how long a call of the engine may take before the node looks at the object again. The
	// engine continues its work after that, and the next call finds it.
	callTime = time.Minute
	// tasksAtOnce is how many tasks are done at once: a cluster can ask for the space of all volumes at one moment, and the other
	// workers are for what pods wait for.
	tasksAtOnce = 4
	taskRetry   = time.Second // until a task asks for a place again
	// gatherTime is how long changes of a volume are gathered before they are written: a volume that is staged is
	// published a moment later.
	gatherTime = 500 * time.Millisecond
	// foreignTime is the time between two looks at whether another node still has the object of a volume.
	foreignTime = 30 * time.Second
	// apiRetry is how long a failed request to the API server waits for its repetition.
	apiRetry = 2 * time.Second
)

var (
	// retries is the wait between two attempts of a call that failed for a cause that ends by itself.
	retries = backoff.Backoff{First: time.Second, Most: 30 * time.Second}
	// refused is the wait after the API server refused an object: a right or a field is missing, which lasts until a person acts.
	refused = backoff.Backoff{First: apiRetry, Most: 5 * time.Minute}
)

// memory is what is remembered of an object, only to try and write less often.
type memory[P wanted] struct {
	failed int       // attempts in a row that failed
	next   time.Time // when the next one is due
	pace   pace.Pace
	exists pace.Pace // of creations and deletions of an object that comes and goes with a drive
	// sent is an object whose status the API server stored differently, as got: its schema is older than this daemon.
	sent, got P
	task      outcome // of the last task
	deleted   bool    // the engine had the volume in removal, and then no more
	foreign   string  // the other node that had the object at the last look; reported once
}

// start starts the workers.
func (p *part[P, V]) start(ctx context.Context, all *sync.WaitGroup) {
	for range workers {
		all.Go(func() { p.work(ctx) })
	}
}

func (p *part[P, V]) work(ctx context.Context) {
	for {
		id, ended := p.queue.Get()
		if ended {
			return
		}
		after, err := p.reconcile(ctx, id)
		if err != nil {
			p.noteBehind(id)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil && client.Refuses(err):
			after = refused.Wait(p.noteRefusal(id, err))
		case err != nil:
			p.opt.Log.Warn("the object of a volume or snapshot is not up to date", "op", "kube", "volume", id, "err", err)
			after = apiRetry
		}
		p.queue.Done(id)
		if after > 0 {
			p.queue.AddAfter(id, after)
		}
	}
}

// noteRefusal records that the API server has refused an object, and returns how often in a row. What is wrong with one is often wrong with
// all: it is logged once, until none is refused.
func (p *part[P, V]) noteRefusal(id string, err error) (times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refusals) == 0 {
		p.opt.Log.Warn("the API server refuses the object of a volume or snapshot: retrying", "op", "kube", "volume", id, "err", err)
	}
	p.refusals[id]++
	return p.refusals[id]
}

// noteBehind records that the object of something is not written.
func (p *part[P, V]) noteBehind(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.behind[id].IsZero() {
		p.behind[id] = time.Now()
	}
}

// old returns the ids of those whose objects the API server has not taken for a while: they show what was.
func (p *part[P, V]) old() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, since := range p.behind {
		if time.Since(since) >= pace.Behind {
			ids = append(ids, id)
		}
	}
	return ids
}

// noteWritten records that an object is written, or is not needed any more.
func (p *part[P, V]) noteWritten(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.behind, id)
	if p.refusals[id] == 0 {
		return
	}
	if delete(p.refusals, id); len(p.refusals) == 0 {
		p.opt.Log.Info("the API server refuses no object of a volume or snapshot any more", "op", "kube")
	}
}

func (p *part[P, V]) remember(id string, f func(*memory[P])) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.memory[id]
	if m == nil {
		m = &memory[P]{}
		p.memory[id] = m
	}
	f(m)
}

func (p *part[P, V]) memoryOf(id string) (out memory[P]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.memory[id]; m != nil {
		out = *m
	}
	return out
}

// forget forgets an object that is gone. What paces its next creation is kept for a while: after is how long.
func (p *part[P, V]) forget(id string) (after time.Duration) {
	p.noteWritten(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.memory[id]
	if m == nil {
		return 0
	}
	if after = m.exists.Left(time.Now()); after > 0 {
		p.memory[id] = &memory[P]{exists: m.exists}
		return after
	}
	delete(p.memory, id)
	return 0
}

// paced does something that creates or deletes an object, or returns how long that has to wait: a drive may come and go all the time.
func (p *part[P, V]) paced(id string, o P, v V, do func() (time.Duration, error)) (after time.Duration, err error) {
	if !p.flaps(o, v) {
		return do()
	}
	now, m := time.Now(), p.memoryOf(id)
	if after = m.exists.Wait(pace.Major, now); after > 0 {
		return after, nil
	}
	p.remember(id, func(m *memory[P]) { m.exists.Wrote(pace.Major, now) })
	return do()
}

// isShown reports whether something has an object. That of another node counts: this node can make none.
func (p *part[P, V]) isShown(id string) bool {
	_, is := p.objects.Get(id)
	return is || p.memoryOf(id).foreign != ""
}

// reconcile does the next thing for a volume or snapshot. after is when to look at it again; 0: after the next change.
func (p *part[P, V]) reconcile(ctx context.Context, id string) (after time.Duration, err error) {
	if set := p.opt.Engine.Volumes(); set.Seq == 0 || !p.objects.Listed() {
		return gatherTime, nil
	}
	o, is := p.objects.Get(id)
	var none V
	v, listed := p.find(id), p.opt.Engine.Listed() == nil
	switch {
	case !is && (v == none || !p.shown(v)):
		if v == none {
			return p.forget(id), nil
		}
		p.noteWritten(id)
		return 0, nil
	case !is:
		return p.paced(id, o, v, func() (time.Duration, error) { return p.show(ctx, id, v) })
	case p.asked(o).Node != p.opt.Name: // its label is wrong
		return 0, nil
	case v == none && p.abandoned(o, p.memoryOf(id).deleted, listed):
		return p.paced(id, o, v, func() (time.Duration, error) { return p.remove(ctx, o) })
	}
	if v, err = p.restore(o, v); err != nil {
		return 0, err
	}
	if do := p.requested(o, v); do != callNone {
		due, again := wait(p.asked(o), p.memoryOf(id).next, time.Now())
		if again && due == 0 {
			return p.call(ctx, o, do)
		}
		if again {
			defer func() {
				if after == 0 || due < after {
					after = due
				}
			}()
		}
	}
	return p.write(ctx, o, p.answer(o, v, outcome{listed: listed}, storedNow()))
}

// storedNow returns the time as the API server stores it: what it returns for a status is then the status that was sent.
func storedNow() time.Time { return time.Now().Truncate(time.Second) }

// call does what an object requests and writes the answer.
func (p *part[P, V]) call(ctx context.Context, o P, do call) (after time.Duration, err error) {
	id := o.GetName()
	if do != callExpand { // the object may have been deleted or changed a moment ago: ask rather than make or delete for nothing
		newest, err := p.api.Get(ctx, id)
		switch {
		case apierrors.IsNotFound(err) || err == nil && newest.GetUID() != o.GetUID():
			return apiRetry, nil // the reflector delivers it
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case newest.GetGeneration() != o.GetGeneration():
			p.objects.Put(newest)
			return 0, nil
		}
		if out, ok := p.restored(newest, do); ok {
			out.listed = p.opt.Engine.Listed() == nil
			return p.write(ctx, o, p.answer(o, p.find(id), out, storedNow()))
		}
	}
	limit := callTime
	if do == callTask {
		limit = taskTime
		select {
		case p.room <- struct{}{}:
			defer func() { <-p.room }()
		default:
			return taskRetry, nil
		}
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	out := p.run(limited, o, do)
	failed := out.err
	cancel()
	if ctx.Err() != nil {
		return 0, nil // the next start continues
	}
	p.remember(id, func(m *memory[P]) {
		if failed == nil {
			m.failed, m.next = 0, time.Time{}
			return
		}
		m.failed++
		m.next = time.Now().Add(retries.Wait(m.failed))
	})
	out.listed = p.opt.Engine.Listed() == nil
	if failed != nil {
		p.opt.Log.Info("the request in the object of a volume or snapshot failed", "op", "kube", "volume", id, "err", failed)
	}
	if _, err = p.write(ctx, o, p.answer(o, p.find(id), out, storedNow())); err != nil {
		return 0, err
	}
	switch {
	case do == callDelete && failed == nil:
		return p.remove(ctx, o)
	case failed != nil && (translate.Transient(translate.ErrorOf(failed)) || errors.Is(failed, drivebay.ErrBusy)): // the pod may end
		return retries.Wait(p.memoryOf(id).failed), nil
	}
	return 0, nil
}

// show makes the object of something that has none. after is when to look again.
func (p *part[P, V]) show(ctx context.Context, id string, v V) (after time.Duration, err error) {
	made, err := p.api.Create(ctx, p.mirror(v), client.NodeOwner)
	if apierrors.IsAlreadyExists(err) {
		return p.conflict(ctx, id)
	}
	if err != nil {
		return 0, fmt.Errorf("make: %w", err)
	}
	p.shows(id, made)
	return 0, nil
}

// shows keeps an object of this node: no other node has it any more.
func (p *part[P, V]) shows(id string, o P) {
	p.remember(id, func(m *memory[P]) { m.foreign = "" })
	p.noteWritten(id)
	p.objects.Put(o)
}

// conflict finds out why something has an object that the node does not see. That of another node may be deleted at any time,
// of which this node hears nothing: it looks again.
func (p *part[P, V]) conflict(ctx context.Context, id string) (after time.Duration, err error) {
	o, err := p.api.Get(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		p.remember(id, func(m *memory[P]) { m.foreign = "" })
		p.queue.Add(id)
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read: %w", err)
	}
	node := p.asked(o).Node
	if node == p.opt.Name { // it was made a moment ago, or lost its label
		if labels := client.Labels(node); o.GetLabels()[client.NodeLabel] != labels[client.NodeLabel] {
			if o, err = p.api.Apply(ctx, p.label(metav1.ObjectMeta{Name: id, UID: o.GetUID(), Labels: labels}), client.NodeOwner); err != nil {
				return 0, fmt.Errorf("label: %w", err)
			}
		}
		p.shows(id, o)
		return 0, nil
	}
	p.noteWritten(id) // it is not this node that is refused
	if p.memoryOf(id).foreign != node {
		p.remember(id, func(m *memory[P]) { m.foreign = node })
		p.opt.Log.Error("a volume or snapshot of this node has the object of another node, and is not shown in the cluster: find out which of the two is in use, and set spec.adopt of the object to this node if its drives are here", "op", "kube", "volume", id, "node", node)
	}
	return foreignTime, nil
}

// remove deletes the object of something that is gone. after is when to look again.
func (p *part[P, V]) remove(ctx context.Context, o P) (after time.Duration, err error) {
	if err := p.api.Delete(ctx, o.GetName(), o.GetUID()); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return 0, fmt.Errorf("delete: %w", err)
	}
	p.objects.Drop(o.GetName())
	return p.forget(o.GetName()), nil
}

// write writes a status unless the object has it. A status that is no answer may have to wait: after is how long.
func (p *part[P, V]) write(ctx context.Context, o, want P) (after time.Duration, err error) {
	id := o.GetName()
	m, now := p.memoryOf(id), time.Now()
	u := p.urgency(o, want)
	var none P
	if u == pace.None || m.sent != none && p.urgency(m.sent, want) == pace.None && p.urgency(m.got, o) == pace.None {
		p.noteWritten(id)
		return 0, nil
	}
	if after := m.pace.Wait(u, now); after > 0 {
		return after, nil
	}
	p.remember(id, func(m *memory[P]) { m.pace.Wrote(u, now) }) // one that fails may have been made
	written, err := p.api.ApplyStatus(ctx, want, client.NodeOwner)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // deleted meanwhile
		return apiRetry, nil
	case err != nil:
		return 0, fmt.Errorf("write the status: %w", err)
	}
	p.noteWritten(id)
	if p.urgency(written, want) != pace.None {
		p.remember(id, func(m *memory[P]) { m.sent, m.got = want, written })
	}
	p.objects.Put(written)
	return 0, nil
}
