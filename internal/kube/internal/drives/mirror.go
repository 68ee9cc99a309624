package drives

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
)

// Engine is the part of the drive manager that the mirror needs.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	// Unready returns why the list of drives may lack some; empty: it does not.
	Unready() []string
	Claim(ctx context.Context, drive string, on bool) error
	Cordon(ctx context.Context, drive string, on bool) error
	Locate(ctx context.Context, bay string, on bool) error
	Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error
}

// Volumes is the part of the volume engine that the mirror needs.
type Volumes interface {
	WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error)
	// DriveRooms returns the space of the drives; nil: it is not known yet.
	DriveRooms() map[string]drivebay.DriveRoom
}

// Clock is the machine's time.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Options configure a Mirror.
type Options struct {
	Node    string // name of the node
	Engine  Engine
	Volumes Volumes // nil: the machine has no volumes
	Clock   Clock
	Log     *slog.Logger
	// Old gets the names of the objects that the API server does not take, after each comparison of all drives; it may be nil.
	Old func([]string)
}

const (
	callTime   = 10 * time.Second // of a request to the API server
	engineTime = time.Minute      // of a call of the engine
	resultTime = time.Second      // so long a status waits for the result of a call before it is written without
	// roundTime is the longest time between two comparisons of all drives: the space of a drive changes
	// without a new snapshot.
	roundTime = 30 * time.Second
)

var (
	// apart is the wait after the API server did not answer, refused the wait after it refused one object.
	apart   = backoff.Backoff{First: time.Second, Most: 30 * time.Second}
	refused = backoff.Backoff{First: time.Second, Most: 5 * time.Minute}
)

// Mirror keeps the Drive objects of a node like its drives. One goroutine writes. It never holds up the engine: it reads
// snapshots, and makes calls that the engine offers to all edges.
type Mirror struct {
	opt     Options
	drives  client.Drives
	objects *client.Cache[v1alpha1.Drive, *v1alpha1.Drive]
	wake    chan struct{}
	results chan result
	known   map[string]*object

	failures int       // of the API server in a row
	since    time.Time // when those began
	resume   time.Time // no request to the API server before
	told     time.Time // when a refused object was last logged
}

// object is what the mirror remembers about the object of a drive.
type object struct {
	pace     pace.Pace
	at       *progress
	began    time.Time // of the call in at
	failures int       // in a row
	since    time.Time // since when it is not written; zero: it is
	resume   time.Time
}

// result is that of a call of the engine.
type result struct {
	name string
	of   request
	err  error
}

// New returns a mirror that writes by a client of the drives.
func New(drives client.Drives, opt Options) *Mirror {
	m := &Mirror{opt: opt, drives: drives, wake: make(chan struct{}, 1), results: make(chan result), known: map[string]*object{}}
	m.objects = client.NewCache[v1alpha1.Drive](func(string) { m.changed() })
	return m
}

// changed wakes the loop.
func (m *Mirror) changed() {
	select {
	case m.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Run mirrors the drives until ctx ends.
func (m *Mirror) Run(ctx context.Context) error {
	if _, err := m.opt.Engine.Wait(ctx, 0); err != nil {
		return nil // ctx has ended
	}
	go client.Follow(ctx, m.opt.Log, m.objects, m.drives, client.Selector(m.opt.Node))
	go m.followDrives(ctx)
	if m.opt.Volumes != nil {
		go m.followVolumes(ctx)
	}
	for {
		wait := min(m.round(ctx), roundTime)
		if m.opt.Old != nil {
			m.opt.Old(m.old())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		case <-m.opt.Clock.After(wait):
		case r := <-m.results:
			m.finished(r)
		}
	}
}

// followDrives wakes the loop when something other than a counter changes.
func (m *Mirror) followDrives(ctx context.Context) {
	for after, state := uint64(0), uint64(0); ; {
		s, err := m.opt.Engine.Wait(ctx, after)
		if err != nil {
			return // ctx has ended
		}
		if after = s.Seq; s.StateSeq != state {
			state = s.StateSeq
			m.changed()
		}
	}
}

// followVolumes wakes the loop at each change of the volumes, which take space.
func (m *Mirror) followVolumes(ctx context.Context) {
	for after := uint64(0); ; m.changed() {
		s, err := m.opt.Volumes.WaitVolumes(ctx, after)
		if err != nil {
			return // ctx has ended
		}
		after = s.Seq
	}
}

// finished stores the result of a call.
func (m *Mirror) finished(r result) {
	k := m.known[r.name]
	if k == nil || k.at == nil || k.at.request != r.of {
		return // the drive was forgotten meanwhile
	}
	done := r.of.result(r.err)
	k.at.running, k.at.done = false, &done
	log := m.opt.Log.With("op", "kube", "drive", r.name, "field", r.of.field, "value", r.of.value)
	if r.err != nil {
		log.Warn("the request of a Drive object was not applied", "err", r.err)
		return
	}
	log.Info("the request of a Drive object was applied")
}

// round compares all drives with their objects. It returns the time until the next round is due.
func (m *Mirror) round(ctx context.Context) time.Duration {
	names, listed := m.objects.Names()
	if !listed {
		return roundTime
	}
	s := m.opt.Engine.Snapshot()
	n := node{name: m.opt.Node}
	if m.opt.Volumes != nil {
		n.rooms = m.opt.Volumes.DriveRooms()
	} else {
		n.rooms = map[string]drivebay.DriveRoom{}
	}
	due, there := roundTime, map[string]bool{}
	for i := range s.Drives {
		d := &s.Drives[i]
		name := ObjectName(d.ID, m.opt.Node)
		there[name] = true
		k := m.known[name]
		if k == nil {
			k = &object{}
			m.known[name] = k
		}
		if wait := m.pause(k); wait > 0 {
			due = min(due, wait)
			continue
		}
		wait, err := m.follow(ctx, name, k, n, s, d)
		if due = min(due, wait); err != nil {
			m.failed(ctx, name, k, err)
			due = min(due, m.pause(k))
		}
	}
	for _, name := range forgotten(names, there, m.opt.Node, m.opt.Engine.Unready()) {
		due = min(due, m.forget(ctx, name))
	}
	for name := range m.known {
		if _, exists := m.objects.Get(name); !there[name] && !exists {
			delete(m.known, name)
		}
	}
	return due
}

// old returns the names of the objects that the API server has not taken for a while: they show what was.
func (m *Mirror) old() (names []string) {
	now := m.opt.Clock.Now()
	is := func(since time.Time) bool { return !since.IsZero() && now.Sub(since) >= pace.Behind }
	for name, k := range m.known {
		if is(k.since) || m.failures > 0 && is(m.since) {
			names = append(names, name)
		}
	}
	return names
}

// pause returns how long requests about an object have to wait after failures.
func (m *Mirror) pause(k *object) time.Duration {
	now := m.opt.Clock.Now()
	return max(m.resume.Sub(now), k.resume.Sub(now))
}

// follow does the next step for one drive, and returns the time until the one after it.
func (m *Mirror) follow(ctx context.Context, name string, k *object, n node, s *drivebay.Snapshot, d *drivebay.Drive) (time.Duration, error) {
	o, exists := m.objects.Get(name)
	if !exists {
		var err error
		if o, err = m.create(ctx, name); err != nil {
			return roundTime, err
		}
	}
	if k.at != nil && !k.at.running && !slices.Contains(requests(&o.Spec), k.at.request) {
		k.at = nil // the field has changed meanwhile
	}
	p := decide(o, d, k.at)
	now := m.opt.Clock.Now()
	if p.call != nil && !p.first {
		m.start(ctx, name, k, *p.call, *d)
	}
	if k.at != nil && k.at.running && now.Sub(k.began) < resultTime {
		return resultTime - now.Sub(k.began), nil // one write for both
	}
	want := n.observed(s, d, &o.Status)
	complete(&want, o, p, now)
	u := statuses.Urgency(&o.Status, &want)
	if u != pace.None {
		if wait := k.pace.Wait(u, now); wait > 0 {
			return wait, nil
		}
		if p.first {
			k.at = &progress{request: *p.call}
		}
		if err := m.write(ctx, o, k, &want, u); err != nil {
			return roundTime, err
		}
	}
	k.since = time.Time{}                // the object is up to date
	if k.at != nil && k.at.done != nil { // it is in the status now
		k.at = nil
		return 0, nil
	}
	if p.first {
		return 0, nil
	}
	return roundTime, nil
}

// create makes the object of a drive.
func (m *Mirror) create(ctx context.Context, name string) (*v1alpha1.Drive, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	o, err := m.drives.Apply(ctx, &v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: client.Labels(m.opt.Node)}}, client.NodeOwner)
	if err != nil {
		return nil, fmt.Errorf("make the object: %w", err)
	}
	m.objects.Put(o)
	m.succeeded()
	return o, nil
}

// write writes a status.
func (m *Mirror) write(ctx context.Context, o *v1alpha1.Drive, k *object, want *v1alpha1.DriveStatus, u pace.Urgency) error {
	k.pace.Wrote(u, m.opt.Clock.Now()) // one that fails may have been made
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	out, err := m.drives.ApplyStatus(ctx, &v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Status: *want}, client.NodeOwner)
	if apierrors.IsNotFound(err) { // it was deleted, and is made again in the next round
		m.objects.Drop(o.Name)
		m.changed()
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	m.objects.Put(out)
	k.failures = 0
	m.succeeded()
	return nil
}

// start makes a call of the engine beside the loop.
func (m *Mirror) start(ctx context.Context, name string, k *object, r request, d drivebay.Drive) {
	k.at, k.began = &progress{request: r, running: true}, m.opt.Clock.Now()
	go func() {
		limited, cancel := context.WithTimeout(ctx, engineTime)
		defer cancel()
		err := r.do(limited, m.opt.Engine, &d)
		select {
		case m.results <- result{name, r, err}:
		case <-ctx.Done():
		}
	}()
}

// forgotten returns which objects have no drive any more. While the daemon is not ready there are none: the records
// of absent drives may not be read yet.
func forgotten(names []string, there map[string]bool, node string, unready []string) (out []string) {
	for _, name := range names {
		if _, of, _ := strings.Cut(name, "."); len(unready) == 0 && of == node && !there[name] {
			out = append(out, name)
		}
	}
	return out
}

// forget deletes the object of a drive that the engine no longer knows.
func (m *Mirror) forget(ctx context.Context, name string) time.Duration {
	o, exists := m.objects.Get(name)
	if !exists {
		return roundTime
	}
	k := m.known[name]
	if k == nil {
		k = &object{}
		m.known[name] = k
	}
	if wait := m.pause(k); wait > 0 || o.DeletionTimestamp != nil {
		return wait
	}
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	switch err := m.drives.Delete(limited, name, o.UID); {
	case err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err): // a conflict: it is another object already
		m.objects.Drop(name)
		m.succeeded()
		m.opt.Log.Info("the object of a forgotten drive is deleted", "op", "kube", "drive", name)
	default:
		m.failed(ctx, name, k, fmt.Errorf("delete the object: %w", err))
		return m.pause(k)
	}
	return roundTime
}

// failed sets the wait after a failure: of all objects if the API server did not answer, else of the one that it
// refused.
func (m *Mirror) failed(ctx context.Context, name string, k *object, err error) {
	if ctx.Err() != nil {
		return
	}
	now, log := m.opt.Clock.Now(), m.opt.Log.With("op", "kube", "drive", name, "err", err)
	if k.since.IsZero() {
		k.since = now
	}
	if client.Refuses(err) {
		if k.failures++; k.failures == 1 && now.Sub(m.told) >= pace.Window { // what is wrong with one is wrong with all
			m.told = now
			log.Warn("the API server refuses the object of a drive: retrying")
		}
		k.resume = now.Add(spread(refused.Wait(k.failures)))
		return
	}
	if m.failures++; m.failures == 1 {
		m.since = now
		log.Warn("the API server does not take the objects of the drives: retrying")
	}
	m.resume = now.Add(spread(apart.Wait(m.failures)))
}

// spread changes a wait by up to a tenth, so that a thousand nodes do not return at the same moment.
func spread(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1))
}

func (m *Mirror) succeeded() {
	if m.failures > 0 {
		m.opt.Log.Info("the API server takes the objects of the drives again", "op", "kube")
	}
	m.failures = 0
}
