package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
)

// serve runs a server on a socket and on TCP until the test ends.
func serve(t *testing.T, e *engine) (unix, tcp *Client, stop func() error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run", "drivebay.sock")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	open, err := ListenTCP(t.Context(), "127.0.0.1:0", Access{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := full(e) // before the test goes on with the engine
	go func() { ended <- server.Serve(ctx, l, open) }()
	unix, tcp = Dial("unix://"+path), Dial("http://"+open.Addr().String()+"/")
	t.Cleanup(func() { unix.Close(); tcp.Close() })
	return unix, tcp, func() error { cancel(); return <-ended }
}

func TestClientMirrorsTheEngine(t *testing.T) {
	e := newEngine(3)
	e.events = []drivebay.Event{{Seq: 1, Cause: "one"}, {Seq: 2, Cause: "two"}}
	c, tcp, stop := serve(t, e)
	ctx := t.Context()
	for _, c := range []*Client{c, tcp} {
		if s, err := c.Snapshot(ctx); err != nil || !reflect.DeepEqual(s, e.snap) {
			t.Errorf("snapshot %+v, %v", s, err)
		}
		if s, err := c.Drives(ctx); err != nil || s.Seq != 3 || len(s.Drives) != 2 || s.Drives[0].Evidence != nil {
			t.Errorf("drives %+v, %v", s, err)
		}
		if d, err := c.Drive(ctx, "/dev/sda"); err != nil || !reflect.DeepEqual(d, &e.snap.Drives[0]) {
			t.Errorf("drive %+v, %v", d, err)
		}
		if b, err := c.Bays(ctx); err != nil || !reflect.DeepEqual(b, e.snap.Bays) {
			t.Errorf("bays %+v, %v", b, err)
		}
		if ev, err := c.Events(ctx, 1, 0); err != nil || !reflect.DeepEqual(ev, e.events[1:]) {
			t.Errorf("events %+v, %v", ev, err)
		}
		if v, err := c.Version(ctx); err != nil || v.Version != "v1" {
			t.Errorf("version %+v, %v", v, err)
		}
	}
	if p, err := c.Pages(ctx, "sda"); err != nil || len(p) != 2 || string(p[0].Data) != "\x00\xff" {
		t.Errorf("pages %v, %v", p, err)
	}
	err := errors.Join(c.SelfTest(ctx, "SDA", "x"), c.SelfTest(ctx, "sda", "long"), c.Acknowledge(ctx, "sdb", "C"), c.Cordon(ctx, "sdb", false), c.Claim(ctx, "sdb", true), c.Locate(ctx, "Slot 7/ü %41", true), c.Refresh(ctx))
	if !errors.Is(err, drivebay.ErrNotFound) || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("want the one drive that is not found, got: %v", err)
	}
	want := []string{"pages naa-5000a", "selftest naa-5000a long", `acknowledge naa-5000b "C"`, "cordon naa-5000b false", "claim naa-5000b true", "locate Slot 7/ü %41 true", "refresh"}
	if got := e.asked(); !reflect.DeepEqual(got, want) {
		t.Errorf("the engine was asked %q, want %q", got, want)
	}
	if err := tcp.Cordon(ctx, "sda", true); err == nil || !strings.Contains(err.Error(), "unix socket") {
		t.Errorf("a change over TCP: %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestClientErrorsUnwrap(t *testing.T) {
	e := newEngine(1)
	c, _, stop := serve(t, e)
	for _, sentinel := range []error{drivebay.ErrNotFound, drivebay.ErrAmbiguous, drivebay.ErrInvalid, drivebay.ErrBusy, drivebay.ErrRefused, drivebay.ErrNoSupport, drivebay.ErrPermission, drivebay.ErrTimeout, drivebay.ErrPending, drivebay.ErrExists, drivebay.ErrNoSpace, drivebay.ErrRange} {
		e.mu.Lock()
		e.fail = sentinel
		e.mu.Unlock()
		if err := c.Refresh(t.Context()); !errors.Is(err, sentinel) {
			t.Errorf("%v came as %v", sentinel, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestClientWithoutDaemon(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	leaveStale(t, stale)
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "hello", http.StatusTeapot) }))
	defer odd.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	defer page.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	cases := []struct {
		url, want string
		is        error
	}{
		{"unix://" + dir + "/none.sock", "start it with `drivebay serve`, or use --local", ErrNoDaemon},
		{"unix://" + stale, "no daemon answers at unix://" + stale, ErrNoDaemon},
		{gone.URL, "no daemon answers at " + gone.URL, ErrNoDaemon},
		{odd.URL, "no drivebay", nil},
		{page.URL, "no drivebay", nil},
		{"/run/drivebay.sock", "want unix:///path", drivebay.ErrInvalid},
		{"unix://run/drivebay.sock", "want unix:///path", drivebay.ErrInvalid},
		{"ftp://host", "want unix:///path", drivebay.ErrInvalid},
		{"http://\x7f", "address", drivebay.ErrInvalid},
		{"", "want unix:///path", drivebay.ErrInvalid},
	}
	for _, c := range cases {
		_, err := Dial(c.url).Drives(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || (c.is != nil && !errors.Is(err, c.is)) {
			t.Errorf("%q: %v", c.url, err)
		}
	}
}

func TestClientMayNot(t *testing.T) {
	err := Dial("unix:///x.sock").unreached(t.Context(), &net.OpError{Op: "dial", Err: fs.ErrPermission})
	if !errors.Is(err, drivebay.ErrPermission) || !strings.Contains(err.Error(), "use sudo") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial("unix:///x.sock").Drives(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// leaveStale leaves a socket behind as a killed daemon does.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListenUnix(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(dir, "drivebay.sock")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o600, dir: fs.ModeDir | 0o755} {
		if st, err := os.Stat(name); err != nil || st.Mode() != want {
			t.Errorf("%s: mode %v, want %v (%v)", name, st.Mode(), want, err)
		}
	}
	if _, err := ListenUnix(path); !errors.Is(err, drivebay.ErrBusy) {
		t.Errorf("a socket where somebody answers: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	leaveStale(t, path)
	if l, err = ListenUnix(path); err != nil {
		t.Fatalf("a socket that was left behind: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(path); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("another kind of file: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file was touched: %q %v", b, err)
	}
	if _, err := ListenUnix(filepath.Join(path, "below", "x.sock")); err == nil {
		t.Error("a socket below a file")
	}
	if _, err := ListenTCP(t.Context(), "no address", Access{}); err == nil {
		t.Error("no address was listened on")
	}
}

func TestLongPoll(t *testing.T) {
	cases := []struct {
		name, path string
		change     bool          // something happens after 7 s
		took       time.Duration // until the answer
		want       string
	}{
		{"a change ends it", "/api/v1/drives?after=3&wait=30s", true, 7 * time.Second, `"seq":4`},
		{"time ends it", "/api/v1/drives?after=3&wait=5s", true, 5 * time.Second, `"seq":3`},
		{"the longest wait", "/api/v1/drives?after=3&wait=10h", false, maxWait, `"seq":3`},
		{"nothing to wait for", "/api/v1/drives?after=2&wait=30s", false, 0, `"seq":3`},
		{"before a restart", "/api/v1/drives?after=99&wait=30s", false, 0, `"seq":3`},
		{"no wait", "/api/v1/drives?after=3", false, 0, `"seq":3`},
		{"events", "/api/v1/events?after=0&wait=30s", true, 7 * time.Second, `"last":1`},
		{"no events", "/api/v1/events?after=0&wait=6s", true, 6 * time.Second, `{"last":0,"events":[]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(3)
				if c.change {
					timer := time.AfterFunc(7*time.Second, func() { e.advance(drivebay.Event{Seq: 1}) })
					defer timer.Stop()
				}
				start := time.Now()
				w := ask(full(e).Handler(true), "GET", c.path, "")
				if took := time.Since(start); w.Code != 200 || took != c.took || !strings.Contains(w.Body.String(), c.want) {
					t.Errorf("status %d after %v, want %v: %.200s", w.Code, took, c.took, w.Body)
				}
			})
		})
	}
}

// A request for drives just after the start gets an answer with the first listing, and never an
// empty list.
func TestDrivesBeforeTheFirstListing(t *testing.T) {
	for _, path := range []string{"/api/v1/snapshot", "/api/v1/drives", "/api/v1/drives/sda", "/api/v1/bays"} {
		for listed, want := range map[time.Duration]int{7 * time.Second: 200, time.Hour: 503} {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(0)
				timer := time.AfterFunc(listed, func() { e.advance() })
				defer timer.Stop()
				began := time.Now()
				w := ask(full(e).Handler(true), "GET", path, "")
				if took := time.Since(began); w.Code != want || took != min(listed, listTime) {
					t.Errorf("%s: status %d after %v: %.200s", path, w.Code, took, w.Body)
				}
			})
		}
	}
}

// A long poll before the first listing gets the first listing too, whatever number the caller has from before a restart
// of the daemon; without a listing it gets an error, and never an empty list.
func TestLongPollBeforeTheFirstListing(t *testing.T) {
	for _, path := range []string{"/api/v1/snapshot", "/api/v1/drives", "/api/v1/bays", "/api/v1/volumes"} {
		for _, after := range []string{"0", "99"} {
			for listed, want := range map[time.Duration]int{7 * time.Second: 200, time.Hour: 503} {
				synctest.Test(t, func(t *testing.T) {
					e := newEngine(0)
					v := newVolumes(e)
					v.set.Store(&drivebay.VolumeSet{})
					timer := time.AfterFunc(listed, func() { v.set.Store(&drivebay.VolumeSet{Seq: 1}); e.advance() })
					defer timer.Stop()
					w := ask(New(e, Options{Volumes: v}).Handler(true), "GET", path+"?wait=5s&after="+after, "")
					if w.Code != want || want == 200 && strings.Contains(w.Body.String(), `"seq":0`) {
						t.Errorf("%s after %s: status %d: %.200s", path, after, w.Code, w.Body)
					}
				})
			}
		}
	}
}

func TestClientWaits(t *testing.T) {
	e := newEngine(3)
	c, _, stop := serve(t, e)
	got := make(chan error, 1)
	go func() {
		s, err := c.Wait(t.Context(), 3)
		if err == nil && s.Seq != 4 {
			err = errors.New("not the next snapshot")
		}
		ev, everr := c.WaitEvents(t.Context(), 0)
		if len(ev) != 1 {
			everr = errors.Join(everr, errors.New("no event"))
		}
		got <- errors.Join(err, everr)
	}()
	e.advance(drivebay.Event{Seq: 1})
	if err := <-got; err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestStopEndsLongPolls: a daemon that stops answers those who wait, at once.
func TestStopEndsLongPolls(t *testing.T) {
	e := newEngine(3)
	c, _, stop := serve(t, e)
	answered := make(chan error, 1)
	waiting := make(chan struct{})
	go func() {
		close(waiting)
		_, err := get[*drivebay.Snapshot](t.Context(), c, "/api/v1/drives", polling(3))
		answered <- err
	}()
	<-waiting
	start := time.Now()
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	<-answered
	if took := time.Since(start); took > stopTime {
		t.Errorf("stopping took %v", took)
	}
	if _, err := os.Stat(strings.TrimPrefix(c.url, "unix://")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestCallerGone: what a caller asked for is given up when he leaves.
func TestCallerGone(t *testing.T) {
	e := newEngine(3)
	began, ended := make(chan struct{}), make(chan struct{})
	e.during = func(ctx context.Context) {
		close(began)
		<-ctx.Done()
		close(ended)
	}
	c, _, stop := serve(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if err := c.Refresh(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-ended
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestServeReportsAFailedListener(t *testing.T) {
	l, err := ListenTCP(t.Context(), "127.0.0.1:0", Access{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := full(newEngine(1)).Serve(t.Context(), l); err == nil {
		t.Error("no error")
	}
}

// BenchmarkDrives100 is a list of a hundred drives, answered from the snapshot.
func BenchmarkDrives100(b *testing.B) {
	e := newEngine(1)
	for len(e.snap.Drives) < 100 {
		e.snap.Drives = append(e.snap.Drives, e.snap.Drives[0])
	}
	h := full(e).Handler(true)
	for b.Loop() {
		if w := ask(h, "GET", "/api/v1/drives", ""); w.Code != 200 || !json.Valid(w.Body.Bytes()) {
			b.Fatal(w.Body)
		}
	}
}

// A handler that is mounted for the unix socket is on no TCP address, for reading neither.
func TestPageIsLocal(t *testing.T) {
	e := newEngine(1)
	s := full(e)
	s.MountLocal("/ui/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = e.call(r.Context(), "ui") }))
	for _, path := range []string{"/ui/", "/ui/state", "/ui/app.js"} {
		if w := ask(s.Handler(true), "GET", path, ""); w.Code != http.StatusForbidden || len(e.asked()) != 0 {
			t.Errorf("%s over TCP: %d, asked %v", path, w.Code, e.asked())
		}
	}
	if w := ask(s.restricted(errMember), "GET", "/ui/state", ""); w.Code != http.StatusOK || len(e.asked()) != 1 {
		t.Errorf("a member of the group reads: %d", w.Code)
	}
	if w := ask(s.restricted(errMember), "POST", "/ui/actions", "{}"); w.Code != http.StatusForbidden || len(e.asked()) != 1 {
		t.Errorf("a member of the group acts: %d", w.Code)
	}
}
