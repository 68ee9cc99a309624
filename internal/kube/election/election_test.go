package election

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func held(by string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &by, RenewTime: &metav1.MicroTime{Time: renewed}}}
}

// TestMay: a Lease is taken only after its holder was silent for leaseTime by the own clock, and never by a leader that has
// lost it.
func TestMay(t *testing.T) {
	now := time.Unix(1e9, 0)
	var followed []string
	c := &candidate{opt: Options{Identity: "me", Log: slog.New(slog.DiscardHandler), Follow: func(leader string) { followed = append(followed, leader) }}}
	check := func(what string, l *coordinationv1.Lease, want bool) {
		t.Helper()
		if got := c.may(l, now); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	check("a new Lease", &coordinationv1.Lease{}, true)
	check("a released Lease", held("", now), true)
	check("the own Lease", held("me", now), true)
	long := now.Add(-time.Hour) // by the clock of its holder
	check("a Lease of another one, first seen", held("other", long), false)
	now = now.Add(leaseTime)
	check("not yet expired", held("other", long), false)
	now = now.Add(time.Second)
	check("expired", held("other", long), true)
	check("renewed in the last moment", held("other", long.Add(time.Second)), false)
	now = now.Add(leaseTime)
	check("taken by a third one", held("third", long), false)
	if len(followed) != 2 || followed[0] != "other" || followed[1] != "third" {
		t.Errorf("followed %v", followed)
	}
	c.leads = true
	now = now.Add(time.Hour)
	check("lost", held("third", long), false)
}

// TestTake: the holder and the number of transitions change only when the Lease changes hands.
func TestTake(t *testing.T) {
	c := &candidate{opt: Options{Identity: "me"}}
	l := &coordinationv1.Lease{}
	c.take(l)
	first := *l.Spec.AcquireTime
	if c.take(l); *l.Spec.LeaseTransitions != 0 || !l.Spec.AcquireTime.Equal(&first) {
		t.Errorf("a renewal counts as a transition: %+v", l.Spec)
	}
	other := held("other", time.Now())
	one := int32(1)
	other.Spec.LeaseTransitions = &one
	if c.take(other); *other.Spec.LeaseTransitions != 2 || holder(other.Spec) != "me" {
		t.Errorf("%+v", other.Spec)
	}
}

// silent is an API server that answers until it hangs.
type silent struct {
	lease coordinationv1.Lease
	until time.Time
}

func (s *silent) answer(ctx context.Context) error {
	if time.Now().Before(s.until) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *silent) Get(ctx context.Context, _ string) (*coordinationv1.Lease, error) {
	return s.lease.DeepCopy(), s.answer(ctx)
}

func (s *silent) Write(ctx context.Context, l *coordinationv1.Lease, _ string) (*coordinationv1.Lease, error) {
	if err := s.answer(ctx); err != nil {
		return nil, err
	}
	s.lease = *l.DeepCopy()
	return l, nil
}

// TestLostInTime: whenever the API server begins to hang, the leader gives up before another process may lead.
func TestLostInTime(t *testing.T) {
	for wait := time.Duration(0); wait < 2*retryEvery; wait += 300 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			api := &silent{until: time.Now().Add(20*time.Second + wait)}
			led := false
			err := Run(t.Context(), Options{Leases: api, Name: "x", Identity: "me", Log: slog.New(slog.DiscardHandler), Lead: func() { led = true }})
			if left := leaseTime - time.Since(api.lease.Spec.RenewTime.Time); !led || !errors.Is(err, ErrLost) || left < retryEvery {
				t.Errorf("hangs after %v: led %v, %v, %v before the Lease expires", wait, led, err, left)
			}
		})
	}
}
