package events

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/internal/cursor"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Engine is the part of the drive manager that the recorder needs: it has the events of volumes too.
type Engine interface {
	Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	Events(after uint64, limit int) []drivebay.Event
	WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error)
}

// Clock is the machine's time.
type Clock interface{ Now() time.Time }

// Options configure a Recorder.
type Options struct {
	Node    string
	Driver  string // name of the CSI driver
	Engine  Engine
	Volumes func() *drivebay.VolumeSet // nil: the machine has no volumes
	Events  client.Events
	// Drive and Volume return the objects of a drive and of a volume; the UID is empty until the object exists.
	Drive, Volume func(id string) client.Reference
	Cursor        string // file that remembers which events were handled
	Clock         Clock
	Log           *slog.Logger
}

const (
	callTime = 10 * time.Second // of a request to the API server
	// objectTime is how long an event waits for the object that it is about: that of a new drive follows the event.
	objectTime = 10 * time.Second
	// old is the age from which an event is not shown: Kubernetes keeps an Event for an hour (kube-apiserver --event-ttl).
	old = time.Hour
	// burst is how many writes are made at once, refill the time after which one more is. That is a tenth of what the kubelet
	// of the same node may write (eventRecordQPS 50, its default). At one a second, 500 new volumes had the recorder busy for
	// 25 minutes.
	burst  = 60
	refill = 200 * time.Millisecond
	// maxLines is the number of lines from which idle ones are forgotten.
	maxLines = 1024
)

// apart is the wait after the API server did not answer.
var apart = backoff.Backoff{First: time.Second, Most: 30 * time.Second}

// Recorder writes the Events of a node. One goroutine reads and writes.
type Recorder struct {
	opt    Options
	cursor *cursor.Cursor
	lines  map[key]*line
	late   []drivebay.Event // their volume is not known yet
	read   cursor.Mark      // the newest event that was read

	failures int
	resume   time.Time // no write before
	budget   int
	filled   time.Time // when the budget was last filled
	refused  bool      // a refusal was logged
}

type key struct {
	target
	reason drivebay.EventKind
}

// New returns a recorder.
func New(opt Options) *Recorder {
	return &Recorder{opt: opt, cursor: cursor.New(opt.Cursor, opt.Log.With("op", "kube")), lines: map[key]*line{}, budget: burst, filled: opt.Clock.Now()}
}

// reader is the name of the recorder in its cursor.
const reader = "kubernetes"

// Run writes Events until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	if _, err := r.opt.Engine.Wait(ctx, 0); err != nil { // the stored events are read once there is a snapshot
		return nil // ctx has ended
	}
	r.begin()
	for ctx.Err() == nil {
		wait := min(r.retry(), r.flush(ctx))
		r.remember()
		soon, cancel := context.WithTimeout(ctx, wait)
		list, err := r.opt.Engine.WaitEvents(soon, r.read.Seq)
		cancel()
		if err != nil { // nothing happened
			continue
		}
		for _, e := range list {
			r.add(e)
			r.read = cursor.Mark{Seq: e.Seq, At: e.At}
		}
	}
	return nil
}

// idle is the longest wait for an event.
const idle = time.Hour

// begin continues after the event that was handled last. Without a record it begins with the next event: that all drives of a
// machine appeared at its first start is no news.
func (r *Recorder) begin() {
	all := r.opt.Engine.Events(0, 0)
	last, known := r.cursor.Load()[reader]
	for _, e := range all {
		if known && !last.Covers(e) {
			r.add(e)
		}
		r.read = cursor.Mark{Seq: e.Seq, At: e.At}
	}
}

// retry sorts the events again whose volume was not known. It returns the time until the next try.
func (r *Recorder) retry() time.Duration {
	late := r.late
	r.late = nil
	for _, e := range late {
		r.add(e)
	}
	if len(r.late) > 0 {
		return time.Second
	}
	return idle
}

// remember records that all events that were read are handled, once none waits.
func (r *Recorder) remember() {
	if len(r.late) > 0 {
		return
	}
	for _, l := range r.lines {
		if l.waiting != nil {
			return
		}
	}
	r.cursor.Set(reader, r.read)
}

// add sorts an event into the lines of the objects that it is about.
func (r *Recorder) add(e drivebay.Event) {
	now := r.opt.Clock.Now()
	if now.Sub(e.At) > old {
		return
	}
	var v *drivebay.VolumeView
	if r.opt.Volumes != nil && e.Volume != "" {
		if v, _ = r.opt.Volumes().Get(e.Volume); v == nil && rowOf(e).On&(Claim|Pods) != 0 && now.Sub(e.At) < objectTime {
			r.late = append(r.late, e)
			return
		}
	}
	for _, t := range targets(e, v) {
		k := key{t, e.Kind}
		l := r.lines[k]
		if l == nil {
			r.forget(now)
			l = &line{target: t, reason: e.Kind}
			r.lines[k] = l
		}
		l.used = now
		l.add(e)
	}
}

// forget forgets lines that have been idle for so long that their Events are gone.
func (r *Recorder) forget(now time.Time) {
	if len(r.lines) < maxLines {
		return
	}
	for k, l := range r.lines {
		if l.waiting == nil && now.Sub(l.used) > kept {
			delete(r.lines, k)
		}
	}
}

// flush writes what is due, warnings first. It returns the time until more is.
func (r *Recorder) flush(ctx context.Context) time.Duration {
	for {
		l, wait := r.due(r.opt.Clock.Now())
		if l == nil {
			return wait
		}
		r.write(ctx, l)
	}
}

// due returns the line that is to be written now; nil: none, and the time until one is. It drops what has waited too long.
func (r *Recorder) due(now time.Time) (first *line, wait time.Duration) {
	all := max(r.resume.Sub(now), r.limit(now))
	wait = idle
	for _, l := range r.lines {
		if l.waiting != nil && now.Sub(l.waiting.last) > old { // the API server was away for long
			l.waiting = nil
		}
		if l.waiting == nil {
			continue
		}
		if w := max(all, l.resume.Sub(now), l.pace.Wait(pace.Major, now)); w > 0 {
			wait = min(wait, w)
		} else if first == nil || before(l, first) {
			first = l
		}
	}
	return first, wait
}

// before reports whether what waits in a line is written before that of another one.
func before(l, other *line) bool {
	a, b := l.waiting, other.waiting
	if a.warning != b.warning {
		return a.warning
	}
	return cmp.Or(a.first.Compare(b.first), cmp.Compare(l.reason, other.reason), cmp.Compare(l.target.about, other.target.about)) < 0
}

// limit returns how long the next write has to wait for the budget of all.
func (r *Recorder) limit(now time.Time) time.Duration {
	if n := int(now.Sub(r.filled) / refill); n > 0 {
		r.budget, r.filled = min(r.budget+n, burst), r.filled.Add(time.Duration(n)*refill)
	}
	if r.budget > 0 {
		return 0
	}
	return r.filled.Add(refill).Sub(now)
}

// write writes what waits in a line, or sets when it is tried again.
func (r *Recorder) write(ctx context.Context, l *line) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	now := r.opt.Clock.Now()
	on, found, err := r.resolve(ctx, l.target)
	switch {
	case err == nil && !found:
		l.waiting = nil
		return
	case err == nil && on.UID == "" && now.Sub(l.waiting.first) < objectTime:
		l.resume = now.Add(time.Second)
		return
	case err == nil:
		r.budget--
		err = r.send(ctx, l, on, now)
	}
	switch {
	case err == nil:
		l.pace.Wrote(pace.Major, now)
		l.waiting = nil
		if r.failures > 0 {
			r.failures = 0
			r.opt.Log.Info("the API server takes Events again", "op", "kube")
		}
		return
	case ctx.Err() == nil && final(err):
		if !r.refused {
			r.refused = true
			r.opt.Log.Warn("the API server refuses an Event: it is not shown", "op", "kube", "reason", string(l.reason), "object", on.Kind+" "+on.Name, "err", err)
		}
		l.waiting = nil
		return
	}
	if r.failures++; r.failures == 1 && !errors.Is(err, context.Canceled) {
		r.opt.Log.Warn("the API server does not take Events: retrying", "op", "kube", "err", err)
	}
	r.resume = now.Add(apart.Wait(r.failures))
}

// final reports whether a repetition of the request cannot help: the rights are missing, or the namespace is being deleted.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// send writes an Event, or that the last one has happened again.
func (r *Recorder) send(ctx context.Context, l *line, on client.Reference, now time.Time) error {
	c := l.waiting
	if l.repeats(now) {
		count := l.written.count + c.count
		err := r.opt.Events.Repeat(ctx, on.Namespace, l.written.name, client.EventSeries{Count: count, LastObservedTime: metav1.MicroTime{Time: c.last}})
		if err == nil {
			l.written.count, l.written.at = count, now
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	event := l.event(on, r.opt.Node)
	err := r.opt.Events.Create(ctx, event)
	if apierrors.IsAlreadyExists(err) { // it was written, and the answer was lost
		if err = nil; event.Series != nil {
			err = r.opt.Events.Repeat(ctx, on.Namespace, event.Name, *event.Series)
		}
	}
	if err == nil {
		l.written = written{name: event.Name, note: event.Note, count: c.count, at: now}
	}
	return err
}

// resolve returns the object of a target.
func (r *Recorder) resolve(ctx context.Context, t target) (on client.Reference, found bool, err error) {
	switch t.about {
	case Drive:
		return r.opt.Drive(t.drive), true, nil
	case Node: // the UID of a Node in Events is its name, as the kubelet writes it
		return client.Reference{APIVersion: "v1", Kind: "Node", Name: r.opt.Node, UID: types.UID(r.opt.Node)}, true, nil
	case Volume:
		if r.opt.Volume == nil { // the event is of an earlier run
			return on, false, nil
		}
		return r.opt.Volume(t.volume), true, nil
	case Pods:
		return client.Reference{APIVersion: "v1", Kind: "Pod", Namespace: t.pod.Namespace, Name: t.pod.Name, UID: types.UID(t.pod.UID)}, t.pod.UID != "", nil
	}
	on, found, err = r.opt.Events.ClaimOf(ctx, r.opt.Driver, t.name, t.volume)
	if apierrors.IsNotFound(err) { // a volume without a PersistentVolume
		return on, false, nil
	}
	return on, found, err
}
