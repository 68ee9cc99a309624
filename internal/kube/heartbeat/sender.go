package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Volumes is what the sender needs of the volume engine, Drives of the drive engine.
type (
	Volumes interface {
		WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error)
		Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error)
	}
	Drives interface {
		Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	}
)

// Options are the settings of a Sender.
type Options struct {
	Node    string
	Volumes Volumes
	Drives  Drives
	// Replicates returns why the machine replicates nothing, nil if it can; nil: it is not asked.
	Replicates func(context.Context) error
	Leases     client.Leases
	Log        *slog.Logger
	// Every is the time between two renewals, 0: DefaultEvery. A node counts as down after four times as long.
	Every time.Duration
}

// DefaultEvery is the time between two renewals, which is that of the Leases of kubelets.
const DefaultEvery = 10 * time.Second

// downAfter is how many renewals have to be missing for a node to count as down.
const downAfter = 4

const (
	// gatherTime is how long changes of the room are gathered.
	gatherTime = time.Second
	// requestTime is how long a renewal may take.
	requestTime = 5 * time.Second
	// reportAge is how long a report is used without a change of drives and volumes: the engine computes the room of each
	// kind of class for it.
	reportAge = 5 * time.Minute
)

// Sender renews the Lease of a node.
type Sender struct {
	opt      Options
	mirrored atomic.Bool
	shown    atomic.Bool         // by this run: mirrored may be from an earlier one
	oldOf    map[string][]string // by the kind of the objects; guarded by oldMu
	oldMu    sync.Mutex
	old      atomic.Pointer[[]string]
	stale    atomic.Bool // a drive or a volume has changed since the last report
	wake     chan struct{}
	last     Report
	asked    time.Time             // when the engine was asked for the last report
	lease    *coordinationv1.Lease // as it was last written
	failing  bool
	pace     pace.Pace // of writes because of a change alone
	whole    bool      // a report of all drives was written
}

// New returns a sender.
func New(opt Options) *Sender {
	if opt.Every == 0 {
		opt.Every = DefaultEvery
	}
	return &Sender{opt: opt, wake: make(chan struct{}, 1), oldOf: map[string][]string{}}
}

// Mirrored sets whether all volumes of the node have objects. Once they had, it stays: an object that was
// deleted since is written again.
func (s *Sender) Mirrored(is bool) {
	if is && !s.shown.Swap(true) {
		s.mirrored.Store(true)
		s.changed()
	}
}

// Old sets which objects of a kind the API server does not take from the node.
func (s *Sender) Old(kind string, names []string) {
	s.oldMu.Lock()
	defer s.oldMu.Unlock()
	if s.oldOf[kind] = slices.Clone(names); len(names) > mostOld {
		s.oldOf[kind] = []string{allOf(names[0])}
	}
	var old []string
	for _, names := range s.oldOf {
		old = append(old, names...)
	}
	slices.Sort(old)
	if was := s.old.Load(); was == nil && len(old) > 0 || was != nil && !slices.Equal(*was, old) {
		s.old.Store(&old)
		s.changed()
	}
}

func (s *Sender) changed() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Run renews the Lease until ctx ends: regularly, and when the report changes.
func (s *Sender) Run(ctx context.Context) error {
	var all sync.WaitGroup
	changed := func() {
		s.stale.Store(true)
		s.changed()
	}
	all.Go(func() {
		follow(ctx, changed, s.opt.Volumes.WaitVolumes, func(v *drivebay.VolumeSet) (seq, state uint64) { return v.Seq, v.Seq })
	})
	all.Go(func() {
		follow(ctx, changed, s.opt.Drives.Wait, func(v *drivebay.Snapshot) (seq, state uint64) { return v.Seq, v.StateSeq })
	})
	defer all.Wait()
	var sent Report
	for due := time.Now(); ; {
		r := s.current(ctx)
		now := time.Now()
		if u := s.urgency(&r, &sent, !now.Before(due)); u != pace.None && s.pace.Wait(u, now) == 0 {
			s.pace.Wrote(u, now)
			if s.heard(s.renew(ctx, &r)) {
				sent, s.whole = r, s.whole || r.Whole
			}
			due = now.Add(s.opt.Every)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(due)):
		case <-s.wake:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(gatherTime):
			}
		}
	}
}

// urgency returns how soon a report has to be written in place of the one that was sent; due is true if the Lease is to be renewed. The
// room of a drive that comes and goes changes all the time: a change that has to wait is in the next renewal. What the controller
// waits for after a start does not have to: that the report is of all drives, and that all volumes have objects.
func (s *Sender) urgency(r, sent *Report, due bool) pace.Urgency {
	switch {
	case due, r.Whole && !s.whole, r.Mirrored && !sent.Mirrored, !r.Starting && sent.Starting:
		return pace.Now
	case !reflect.DeepEqual(r, sent):
		return pace.Major
	}
	return pace.None
}

// follow calls changed when the second number of what wait returns is a new one; wait waits for another first number.
func follow[V any](ctx context.Context, changed func(), wait func(context.Context, uint64) (V, error), numbers func(V) (seq, state uint64)) {
	for after, last := uint64(0), uint64(0); ; {
		v, err := wait(ctx, after)
		if err != nil {
			return // ctx has ended
		}
		seq, state := numbers(v)
		if after = seq; state != last {
			last = state
			changed()
		}
	}
}

// current returns the report, for which it asks the engine only if the answer can be another one than the last time.
func (s *Sender) current(ctx context.Context) Report {
	if now := time.Now(); s.stale.Swap(false) || now.Sub(s.asked) >= reportAge {
		if s.last = s.report(ctx); !s.last.Whole {
			s.stale.Store(true)
		}
		s.asked = now
	}
	r := s.last
	if r.Mirrored, r.Starting = s.mirrored.Load(), !s.shown.Load(); s.old.Load() != nil {
		r.Old = *s.old.Load()
	}
	return r
}

// report asks the engine for the room of each kind of class.
func (s *Sender) report(ctx context.Context) Report {
	r := Report{Whole: true, Smallest: map[string]uint64{}, Room: map[string]Room{}}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r.Replicates = s.opt.Replicates != nil && s.opt.Replicates(ctx) == nil
	ask := func(class drivebay.Class) (has drivebay.Capacity, ok bool) {
		has, err := s.opt.Volumes.Capacity(ctx, class)
		r.Whole = r.Whole && (err == nil || errors.Is(err, drivebay.ErrNoSupport) || errors.Is(err, drivebay.ErrInvalid))
		return has, err == nil
	}
	class := drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeDiscard}
	for _, class.FSType = range append([]string{""}, drivebay.FSTypes...) {
		if has, ok := ask(class); ok {
			r.Smallest[class.FSType] = has.Smallest
		}
	}
	class.FSType = "" // the room of any filesystem, which may need more than there is
	for _, class.Drives = range []drivebay.Type{drivebay.TypeUnknown, drivebay.TypeHDD, drivebay.TypeSSD, drivebay.TypeNVMe} {
		for _, class.Backing = range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
			for _, class.Encryption = range []string{"", drivebay.EncryptionLUKS2} {
				if has, ok := ask(class); ok && has.Largest > 0 {
					r.Room[key(class)] = Room{has.Available, has.Largest}
				}
			}
		}
	}
	return r
}

// renew writes the Lease.
func (s *Sender) renew(ctx context.Context, r *Report) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	l, err := s.newest(ctx)
	if err != nil {
		return err
	}
	r.Mirrored = s.mirrored.Load() // the Lease may have it from an earlier run
	l.Labels = map[string]string{component: componentNode}
	seconds := int32(max(1, downAfter*s.opt.Every/time.Second))
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &s.opt.Node, &seconds, &metav1.MicroTime{Time: time.Now()}
	if err := r.write(l); err != nil {
		return err
	}
	s.lease = nil // after an error it is read again
	if l, err = s.opt.Leases.Write(ctx, l, client.NodeOwner); err == nil {
		s.lease = l
	}
	return err
}

// newest returns a copy of the Lease to write: what the last write returned, or else what the API server has.
func (s *Sender) newest(ctx context.Context) (*coordinationv1.Lease, error) {
	if s.lease != nil {
		return s.lease.DeepCopy(), nil
	}
	l, err := s.opt.Leases.Get(ctx, leaseName(s.opt.Node))
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName(s.opt.Node)}}, nil
	}
	if err == nil {
		if _, had, err := Read(l); err == nil && had.Mirrored {
			s.mirrored.Store(true) // by an earlier run of the daemon
		}
	}
	return l, err
}

// heard logs the first of several failures, and the first success after them.
func (s *Sender) heard(err error) bool {
	switch {
	case err != nil && !s.failing && !errors.Is(err, context.Canceled):
		s.failing = true
		s.opt.Log.Warn("the Lease of this node is not renewed: the controller will show its volumes as unreachable", "op", "kube", "err", fmt.Errorf("lease: %w", err))
	case err == nil && s.failing:
		s.failing = false
		s.opt.Log.Info("the Lease of this node is renewed again", "op", "kube")
	}
	return err == nil
}
