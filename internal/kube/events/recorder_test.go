package events

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// engine has stored events.
type engine []drivebay.Event

func (e engine) Wait(context.Context, uint64) (*drivebay.Snapshot, error) {
	return &drivebay.Snapshot{}, nil
}
func (e engine) Events(uint64, int) []drivebay.Event { return e }
func (e engine) WaitEvents(ctx context.Context, _ uint64) ([]drivebay.Event, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// server takes Events, or answers with a status.
type server struct {
	mu     sync.Mutex
	refuse metav1.StatusReason
	code   int
	took   []client.Event
	series []client.EventSeries
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.code != 0 {
		w.WriteHeader(s.code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: s.refuse, Code: int32(s.code)})
		return
	}
	var e client.Event
	_ = json.NewDecoder(r.Body).Decode(&e)
	if r.Method == http.MethodPatch {
		s.series = append(s.series, *e.Series)
	} else {
		s.took = append(s.took, e)
	}
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"})
}

func (s *server) counts() (created, repeated int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.took), len(s.series)
}

func recorder(t *testing.T, e engine, cursor string) (*Recorder, *server, *clock) {
	t.Helper()
	s, c := &server{}, &clock{start}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	api, err := client.New(&rest.Config{Host: h.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		Node: "node", Engine: e, Events: client.NewEvents(api), Cursor: cursor, Clock: c, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Drive: func(id string) client.Reference {
			return client.Reference{Kind: "Drive", Name: id + ".node", UID: types.UID("uid-" + id)}
		},
	}), s, c
}

// TestBudget: many events at once are written little by little, warnings first, and each of them.
func TestBudget(t *testing.T) {
	r, s, c := recorder(t, nil, "")
	for i := range 100 {
		r.add(drivebay.Event{Kind: drivebay.EventCordon, Drive: fmt.Sprint("d", i), At: c.now})
	}
	r.add(drivebay.Event{Kind: drivebay.EventFinding, Drive: "bad", At: c.now.Add(time.Second)})
	if next := r.flush(t.Context()); next > refill {
		t.Errorf("continues after %v", next)
	}
	if n, _ := s.counts(); n != burst || s.took[0].Reason != "FindingAdded" {
		t.Errorf("%d at once, the first %s", n, s.took[0].Reason)
	}
	c.now = c.now.Add(2 * time.Second)
	if r.flush(t.Context()); len(s.took) != burst+10 {
		t.Errorf("%d after 2 s", len(s.took))
	}
	c.now = c.now.Add(time.Minute)
	if next := r.flush(t.Context()); len(s.took) != 101 || next != idle {
		t.Errorf("%d in the end, next after %v", len(s.took), next)
	}
}

// TestFlapping: an event that happens every second is written twice a minute, and counted.
func TestFlapping(t *testing.T) {
	r, s, c := recorder(t, nil, "")
	for range 300 {
		r.add(drivebay.Event{Kind: drivebay.EventVanished, Drive: "d", At: c.now, Cause: "gone"})
		r.flush(t.Context())
		c.now = c.now.Add(time.Second)
	}
	created, repeated := s.counts()
	if created != 2 || repeated != 2*9 { // on the drive and on the node: one each, and 9 counts in 5 minutes
		t.Errorf("%d Events, %d counts", created, repeated)
	}
	if last := s.series[len(s.series)-1]; last.Count < 240 {
		t.Errorf("the last count is %d", last.Count)
	}
}

// TestFailures: what the API server does not take now is written later, and what it never takes is given up.
func TestFailures(t *testing.T) {
	r, s, c := recorder(t, nil, "")
	for _, f := range []struct {
		what   string
		code   int
		reason metav1.StatusReason
		again  bool
	}{
		{"an overloaded server", 503, metav1.StatusReasonServiceUnavailable, true},
		{"missing rights", 403, metav1.StatusReasonForbidden, false},
		{"an Event that was written", 409, metav1.StatusReasonAlreadyExists, false},
	} {
		s.refuse, s.code = f.reason, f.code
		r.add(drivebay.Event{Kind: drivebay.EventFinding, Drive: string(f.reason), At: c.now})
		if next := r.flush(t.Context()); (next != idle) != f.again {
			t.Errorf("%s: next after %v", f.what, next)
		}
		s.code = 0
		was := len(s.took) + len(s.series)
		c.now = c.now.Add(2 * time.Minute)
		if r.flush(t.Context()); (len(s.took)+len(s.series) > was) != f.again {
			t.Errorf("%s: written later: %v", f.what, len(s.took) > was)
		}
	}
}

// TestRestart: the events of the first start are no news, those of the time without a daemon are, and none is handled twice.
func TestRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubernetes.json")
	at := func(seq uint64) drivebay.Event {
		return drivebay.Event{Seq: seq, Kind: drivebay.EventCordon, Drive: fmt.Sprint("d", seq), At: start.Add(time.Duration(seq) * time.Second)}
	}
	stored := engine{at(1), at(2)}
	for _, c := range []struct {
		what string
		more []drivebay.Event
		want int
	}{{"first start", nil, 0}, {"nothing new", nil, 0}, {"one new", engine{at(3)}, 1}, {"again", nil, 0}, {"too old", engine{{Seq: 4, Kind: drivebay.EventCordon, Drive: "d4", At: start.Add(-2 * old)}}, 0}} {
		stored = append(stored, c.more...)
		r, s, _ := recorder(t, stored, file)
		r.begin()
		r.flush(t.Context())
		if r.remember(); len(s.took) != c.want {
			t.Errorf("%s: %d Events", c.what, len(s.took))
		}
	}
}

// TestOldEventIsDropped: while the API server is away, an event waits for up to an hour. One that was repeated counts from the last time.
func TestOldEventIsDropped(t *testing.T) {
	r, s, c := recorder(t, nil, "")
	began := c.now
	vanished := func(drive string) {
		r.add(drivebay.Event{Kind: drivebay.EventVanished, Drive: drive, At: c.now, Cause: "gone"})
	}
	s.refuse, s.code = metav1.StatusReasonServiceUnavailable, 503
	vanished("once")
	vanished("twice")
	for c.now.Sub(began) < old+time.Minute {
		if c.now = c.now.Add(time.Minute); c.now.Sub(began) == old/2 {
			vanished("twice")
		}
		r.flush(t.Context())
	}
	s.refuse, s.code = "", 0
	c.now = c.now.Add(time.Minute)
	r.flush(t.Context())
	written := map[string]bool{}
	for _, e := range s.took {
		written[e.Regarding.Name] = true
	}
	if written["once.node"] || !written["twice.node"] {
		t.Errorf("after %v there are Events of %v", c.now.Sub(began), written)
	}
}
