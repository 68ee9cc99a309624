package heartbeat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
)

// rooms counts the questions for the room of a class.
type rooms struct {
	Volumes
	asked int
	full  bool
	err   error
}

func (r *rooms) Capacity(_ context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	r.asked++
	if c.Backing == drivebay.BackingThin {
		return drivebay.Capacity{}, fmt.Errorf("thin: %w", drivebay.ErrNoSupport)
	}
	if r.full {
		return drivebay.Capacity{Smallest: 1}, r.err
	}
	return drivebay.Capacity{Available: 9, Largest: 5, Smallest: 1}, r.err
}

// TestReportIsAskedForOnce: a renewal of the Lease of a node on which nothing changes does not compute the room of every class.
func TestReportIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &rooms{}
		s := New(Options{Volumes: v})
		first := s.current(t.Context())
		all := v.asked
		if len(first.Room) != 4*4*2 || first.Mirrored {
			t.Fatalf("%+v", first)
		}
		asks := func(what string, again bool) {
			t.Helper()
			v.asked = 0
			r := s.current(t.Context())
			if r.Mirrored, r.Starting = false, first.Starting; v.err == nil && !reflect.DeepEqual(r, first) {
				t.Errorf("%s: %+v", what, r)
			}
			if want := map[bool]int{true: all}[again]; v.asked != want {
				t.Errorf("%s: asked %d times, want %d", what, v.asked, want)
			}
		}
		asks("nothing changed", false)
		s.Mirrored(true)
		if asks("all volumes have objects", false); !s.current(t.Context()).Mirrored {
			t.Error("the report does not say that all volumes have objects")
		}
		s.stale.Store(true)
		asks("a drive changed", true)
		asks("after that", false)
		v.err = drivebay.ErrUnavailable
		time.Sleep(reportAge)
		asks("it is old", true)
		asks("a drive was not read", true)
		v.err = nil
		asks("it was read", true)
		asks("nothing changed again", false)
	})
}

// TestReportOfStart: a node that has not read its drives yet writes another report than a full one.
func TestReportOfStart(t *testing.T) {
	class, err := drivebay.ParseClass(nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, v := range map[bool]*rooms{true: {}, false: {err: drivebay.ErrUnavailable}} {
		v.full = true
		r := New(Options{Volumes: v}).current(t.Context())
		if r.Whole != want || r.Capacity(class).Largest != 0 {
			t.Errorf("%v: %+v", v.err, r)
		}
	}
}

// noMkfs is a node that can make no filesystem.
type noMkfs struct{ rooms }

func (n *noMkfs) Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	if c.FSType != "" {
		return drivebay.Capacity{}, fmt.Errorf("filesystem %s: %w", c.FSType, drivebay.ErrNoSupport)
	}
	return n.rooms.Capacity(ctx, c)
}

// TestReportOfBlockVolumes: a node that can make no filesystem has room for block volumes only.
func TestReportOfBlockVolumes(t *testing.T) {
	class, err := drivebay.ParseClass(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Volumes: &noMkfs{}}).current(t.Context())
	if has := r.Capacity(class); has.Largest != 0 {
		t.Errorf("with a filesystem: %+v", has)
	}
	if class.FSType = ""; r.Capacity(class).Largest == 0 || !r.Whole {
		t.Errorf("block: %+v", r)
	}
}

// flapping is a node whose only drive comes and goes every two seconds, once it was read.
type flapping struct{ began time.Time }

const flapTime, startTime = 2 * time.Second, 15 * time.Second

func (f *flapping) changes() uint64 { return 1 + uint64(time.Since(f.began)/flapTime) }

func (f *flapping) until(ctx context.Context, after uint64) (uint64, error) {
	for f.changes() == after {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(flapTime):
		}
	}
	return f.changes(), nil
}

func (f *flapping) WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	n, err := f.until(ctx, after)
	return &drivebay.VolumeSet{Seq: n}, err
}

func (f *flapping) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	n, err := f.until(ctx, after)
	return &drivebay.Snapshot{Seq: n, StateSeq: n}, err
}

func (f *flapping) Capacity(context.Context, drivebay.Class) (drivebay.Capacity, error) {
	if time.Since(f.began) < startTime {
		return drivebay.Capacity{}, drivebay.ErrUnavailable
	}
	n := f.changes() % 2 * 1000
	return drivebay.Capacity{Available: n, Largest: n}, nil
}

// leaseAPI is an API server that keeps a Lease, and when each report was written.
type leaseAPI struct {
	written []time.Time
	reports []Report
	last    []byte // the Lease
}

func (a *leaseAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	code, text := http.StatusNotFound, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	if r.Method != http.MethodGet {
		l := &coordinationv1.Lease{}
		if err := json.NewDecoder(r.Body).Decode(l); err != nil {
			return nil, err
		}
		_, report, err := Read(l)
		if err != nil {
			return nil, err
		}
		a.written, a.reports = append(a.written, time.Now()), append(a.reports, report)
		l.APIVersion, l.Kind, l.ResourceVersion = "coordination.k8s.io/v1", "Lease", strconv.Itoa(len(a.written))
		code = http.StatusOK
		if text, err = json.Marshal(l); err != nil {
			return nil, err
		}
		a.last = text
	} else if a.last != nil {
		code, text = http.StatusOK, a.last
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
}

// TestLeaseOfFlappingDrive: a drive that comes and goes causes at most two writes of the Lease a minute beside the renewals. The first
// report of all drives, and that all volumes have objects, are written at once.
func TestLeaseOfFlappingDrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := &leaseAPI{}, &flapping{time.Now()}
		leases, err := client.NewLeases(&rest.Config{Host: "http://api", Transport: api, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "drivebay")
		if err != nil {
			t.Fatal(err)
		}
		s := New(Options{Node: "n", Volumes: f, Drives: f, Leases: leases, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		const minutes = 5
		time.Sleep(minutes * time.Minute)
		s.Mirrored(true)
		shown := time.Now()
		time.Sleep(time.Minute)
		cancel()
		<-done
		first := func(what string, has func(Report) bool, since time.Time) {
			t.Helper()
			i := slices.IndexFunc(api.reports, has)
			if i < 0 || api.written[i].Sub(since) > flapTime+2*gatherTime {
				t.Errorf("%s: not written within a few seconds", what)
			}
		}
		first("all drives are read", func(r Report) bool { return r.Whole }, f.began.Add(startTime))
		first("all volumes have objects", func(r Report) bool { return r.Mirrored }, shown)
		const renewals, changes, atOnce = (minutes + 1) * 6, (minutes + 1) * pace.Most, 2
		if n := len(api.written); n < renewals || n > renewals+changes+atOnce {
			t.Errorf("%d writes in %d min; %d renewals are due", n, minutes+1, renewals)
		}
	})
}

// TestReportOfNextRun: what the Lease has from an earlier run, maybe of another machine of that name, says nothing about the volumes
// that this one has found so far.
func TestReportOfNextRun(t *testing.T) {
	api := &leaseAPI{}
	leases, err := client.NewLeases(&rest.Config{Host: "http://api", Transport: api, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "drivebay")
	if err != nil {
		t.Fatal(err)
	}
	written := func(s *Sender) Report {
		t.Helper()
		r := s.current(t.Context())
		if err := s.renew(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		return api.reports[len(api.reports)-1]
	}
	opt := Options{Node: "n", Volumes: &rooms{}, Leases: leases}
	first := New(opt)
	first.Mirrored(true)
	if r := written(first); !r.Mirrored || r.Starting {
		t.Errorf("the first run has shown its volumes: %+v", r)
	}
	next := New(opt)
	if r := written(next); !r.Mirrored || !r.Starting {
		t.Errorf("the next run has not: %+v", r)
	}
	next.Mirrored(false)
	was := next.current(t.Context())
	next.Mirrored(true)
	r := next.current(t.Context())
	if len(next.wake) == 0 || next.urgency(&r, &was, false) != pace.Now {
		t.Error("the controller waits for what is not written at once")
	}
	if r := written(next); !r.Mirrored || r.Starting {
		t.Errorf("it has: %+v", r)
	}
}

// TestReportOfOldObjects: the report names the objects that the API server does not take, or says that they are many.
func TestReportOfOldObjects(t *testing.T) {
	s := New(Options{Volumes: &rooms{}})
	s.Old("volumes", nil)
	if r := s.current(t.Context()); len(s.wake) > 0 || r.IsOld("a") {
		t.Errorf("none: %+v", r.Old)
	}
	s.Old("volumes", []string{"b"})
	s.Old("drives", []string{"a"})
	if r := s.current(t.Context()); len(s.wake) != 1 || !slices.Equal(r.Old, []string{"a", "b"}) || !r.IsOld("a") || r.IsOld("c") {
		t.Errorf("two: %+v", r.Old)
	}
	s.Old("drives", nil)
	s.Old("volumes", make([]string, mostOld+1))
	if r := s.current(t.Context()); len(r.Old) != 1 || !r.IsOld("c") || r.IsOld("d.n1") {
		t.Errorf("many: %+v", r.Old)
	}
	s.Old("volumes", nil)
	if r := s.current(t.Context()); len(r.Old) > 0 {
		t.Errorf("none any more: %+v", r.Old)
	}
}
