package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/drivebay/drivebay"
)

// engine is one that remembers what it was asked.
type engine struct {
	mu     sync.Mutex
	snap   *drivebay.Snapshot
	events []drivebay.Event
	grew   chan struct{}
	calls  []string
	fail   error
	during func(ctx context.Context) // runs inside a call
}

func newEngine(seq uint64) *engine {
	temp := 40
	return &engine{grew: make(chan struct{}), snap: &drivebay.Snapshot{
		Seq: seq, Complete: true, Machine: drivebay.Machine{Name: "m", Kind: "real"},
		Drives: []drivebay.Drive{
			{ID: "naa-5000a", Name: "sda", Identity: drivebay.Identity{Serial: "SER1"}, Paths: []drivebay.Path{{Name: "sda"}}, Health: drivebay.HealthGood, Evidence: &drivebay.Evidence{Temperature: &temp}},
			{ID: "naa-5000b", Name: "sdb", Identity: drivebay.Identity{Serial: "SER1"}, Health: drivebay.HealthBad},
		},
		Bays: []drivebay.Bay{{Slot: drivebay.Slot{Enclosure: "0x5", Bay: "Slot 7/ü %41"}, Drive: "naa-5000a"}},
	}}
}

func (e *engine) advance(events ...drivebay.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := *e.snap
	next.Seq++
	e.snap = &next
	e.events = append(e.events, events...)
	close(e.grew)
	e.grew = make(chan struct{})
}

func (e *engine) Snapshot() *drivebay.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.snap
}

func (e *engine) Events(after uint64, limit int) (out []drivebay.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.events {
		if ev.Seq > after && len(out) < limit {
			out = append(out, ev)
		}
	}
	return out
}

func (e *engine) await(ctx context.Context, done func() bool) error {
	for {
		e.mu.Lock()
		grew := e.grew
		e.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (e *engine) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	err := e.await(ctx, func() bool { return e.Snapshot().Seq > after })
	return e.Snapshot(), err
}

func (e *engine) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	err := e.await(ctx, func() bool { return len(e.Events(after, 1)) > 0 })
	return e.Events(after, maxEvents), err
}

func (e *engine) call(ctx context.Context, format string, args ...any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, fmt.Sprintf(format, args...))
	if e.during != nil {
		e.during(ctx)
	}
	return e.fail
}

func (e *engine) Refresh(ctx context.Context) error { return e.call(ctx, "refresh") }
func (e *engine) Pages(ctx context.Context, d string) ([]drivebay.RawPage, error) {
	return []drivebay.RawPage{{Page: "p", Data: []byte{0, 255}}, {Page: "q", Error: "no"}}, e.call(ctx, "pages %s", d)
}
func (e *engine) SelfTest(ctx context.Context, d, kind string) error {
	return e.call(ctx, "selftest %s %s", d, kind)
}
func (e *engine) Locate(ctx context.Context, bay string, on bool) error {
	return e.call(ctx, "locate %s %v", bay, on)
}
func (e *engine) Acknowledge(ctx context.Context, d, code string) error {
	return e.call(ctx, "acknowledge %s %q", d, code)
}
func (e *engine) Cordon(ctx context.Context, d string, on bool) error {
	return e.call(ctx, "cordon %s %v", d, on)
}
func (e *engine) Operate(ctx context.Context, d string, do drivebay.LeaveVerb, why string) error {
	return e.call(ctx, "lead %s %s %q", d, do, why)
}
func (e *engine) Claim(ctx context.Context, d string, on bool) error {
	return e.call(ctx, "claim %s %v", d, on)
}

func (e *engine) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.calls...)
}

// ask sends one request to a handler.
func ask(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	h.ServeHTTP(w, r)
	return w
}

func full(e *engine) *Server {
	return New(e, Options{
		Volumes: newVolumes(e),
		Version: Version{Version: "v1"}, OpenAPI: []byte("openapi: 3.1.0\n"),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "metric 1") }),
	})
}

func TestAnswers(t *testing.T) {
	const bay = "/api/v1/bays/Slot%207%2F%C3%BC%20%2541/locate"
	cases := []struct {
		method, path, body string
		status             int
		want               string // in the answer
		call               string // of the engine
	}{
		{"GET", "/healthz", "", 200, `{"status":"ok"}`, ""},
		{"GET", "/readyz", "", 200, `{"status":"ok"}`, ""},
		{"GET", "/metrics", "", 200, "metric 1", ""},
		{"GET", "/api/v1/version", "", 200, `{"version":"v1"}`, ""},
		{"GET", "/api/v1/openapi.yaml", "", 200, "openapi: 3.1.0", ""},
		{"GET", "/api/v1/snapshot", "", 200, `"evidence":`, ""},
		{"GET", "/api/v1/drives", "", 200, `"id":"naa-5000b"`, ""},
		{"GET", "/api/v1/drives/sda", "", 200, `"evidence":`, ""},
		{"GET", "/api/v1/drives/%2Fdev%2Fsda", "", 200, `"id":"naa-5000a"`, ""},
		{"GET", "/api/v1/drives/nothing", "", 404, `{"error":{"code":"not_found","message":"drive \"nothing\": not found"}}`, ""},
		{"GET", "/api/v1/drives/SER1", "", 409, `"code":"ambiguous"`, ""},
		{"GET", "/api/v1/drives/naa-5000", "", 409, `"code":"ambiguous"`, ""},
		{"GET", "/api/v1/drives/sda/pages", "", 200, `[{"page":"p","data":"AP8="},{"page":"q","error":"no"}]`, "pages naa-5000a"},
		{"GET", "/api/v1/drives/nothing/pages", "", 404, "not_found", ""},
		{"POST", "/api/v1/drives/sda/selftest", `{"kind":"short"}`, 204, "", "selftest naa-5000a short"},
		{"POST", "/api/v1/drives/sda/selftest", ``, 400, `"code":"invalid"`, ""},
		{"POST", "/api/v1/drives/sda/selftest", `{"kind":"short","now":true}`, 400, "unknown field", ""},
		{"POST", "/api/v1/drives/sda/selftest", `{"kind":"short"} {}`, 400, "more than one", ""},
		{"POST", "/api/v1/drives/sda/selftest", `{"kind":7}`, 400, "invalid", ""},
		{"POST", "/api/v1/drives/sda/selftest", `{"kind":"` + strings.Repeat("x", maxBody) + `"}`, 413, "larger than", ""},
		{"POST", "/api/v1/drives/SER1/selftest", `{"kind":"short"}`, 409, "ambiguous", ""},
		{"POST", "/api/v1/drives/sda/acknowledge", `{"code":"X"}`, 204, "", `acknowledge naa-5000a "X"`},
		{"POST", "/api/v1/drives/sda/acknowledge", ``, 204, "", `acknowledge naa-5000a ""`},
		{"POST", "/api/v1/drives/sdb/leave", `{"do":"release","why":"it clicks"}`, 204, "", `lead naa-5000b release "it clicks"`},
		{"POST", "/api/v1/drives/sdb/cordon", `{"on":true}`, 204, "", "cordon naa-5000b true"},
		{"POST", "/api/v1/drives/sdb/cordon", `{}`, 400, "want true or false", ""},
		{"POST", "/api/v1/drives/sdb/cordon", `{"on":null}`, 400, "want true or false", ""},
		{"GET", "/api/v1/bays", "", 200, `"bay":"Slot 7/ü %41"`, ""},
		{"POST", bay, `{"on":false}`, 204, "", "locate Slot 7/ü %41 false"},
		{"POST", bay, ``, 400, "want true or false", ""},
		{"POST", "/api/v1/refresh", "", 204, "", "refresh"},
		{"GET", "/api/v1/events", "", 200, `{"last":0,"events":[]}`, ""},
		{"GET", "/api/v1/events?limit=x", "", 400, "whole number", ""},
		{"GET", "/api/v1/events?after=-1", "", 400, "whole number", ""},
		{"GET", "/api/v1/drives?wait=soon", "", 400, "want a time", ""},
		{"GET", "/api/v1/drives?wait=-1s", "", 400, "want a time", ""},
		{"GET", "/", "", 404, `"code":"not_found"`, ""},
		{"GET", "/api/v1/", "", 404, `"code":"not_found"`, ""},
		{"GET", "/api/v1/drives/sda/other", "", 404, `"code":"not_found"`, ""},
		{"DELETE", "/api/v1/drives/sda", "", 405, `"code":"method_not_allowed"`, ""},
		{"POST", "/api/v1/drives", "", 405, "GET, HEAD", ""},
		{"GET", "/api/v1/refresh", "", 405, "POST", ""},
		{"HEAD", "/api/v1/drives", "", 200, "", ""},
	}
	for _, c := range cases {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			e := newEngine(3)
			w := ask(full(e).Handler(false), c.method, c.path, c.body)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("status %d, want %d with %q:\n%.400s", w.Code, c.status, c.want, w.Body)
			}
			if got := strings.Join(e.asked(), "; "); got != c.call {
				t.Errorf("the engine was asked %q, want %q", got, c.call)
			}
			kind := w.Header().Get("Content-Type")
			if c.status >= 400 && kind != "application/json; charset=utf-8" {
				t.Errorf("content type %q", kind)
			}
			if c.status == 405 && w.Header().Get("Allow") == "" {
				t.Error("no Allow header")
			}
			if w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Error("no nosniff header")
			}
		})
	}
}

func TestDrivesHasNoEvidence(t *testing.T) {
	e := newEngine(3)
	if body := ask(full(e).Handler(false), "GET", "/api/v1/drives", "").Body.String(); strings.Contains(body, `"evidence"`) {
		t.Errorf("evidence in the list: %s", body)
	}
	if e.snap.Drives[0].Evidence == nil {
		t.Error("the snapshot itself was changed")
	}
}

func TestContentType(t *testing.T) {
	h := full(newEngine(1)).Handler(false)
	for kind, want := range map[string]int{"": 204, "application/json": 204, "application/json; charset=utf-8": 204, "text/plain": 415, "application/x-www-form-urlencoded": 415, ";": 415} {
		r := httptest.NewRequest("POST", "/api/v1/drives/sda/cordon", strings.NewReader(`{"on":true}`))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: status %d, want %d", kind, w.Code, want)
		}
	}
}

func TestReadOnly(t *testing.T) {
	e := newEngine(3)
	s := full(e)
	s.Mount("/sim/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = e.call(r.Context(), "sim") }))
	h := s.Handler(true)
	for _, r := range routes {
		path := strings.NewReplacer("{id}", "sda", "{bay}", "x").Replace(r.path)
		w := ask(h, r.method, path, `{}`)
		if refused := w.Code == http.StatusForbidden; refused != (r.privileged || r.method != "GET") {
			t.Errorf("%s %s: status %d", r.method, r.path, w.Code)
		}
	}
	if w := ask(h, "POST", "/sim/bay/1", "{}"); w.Code != http.StatusForbidden {
		t.Errorf("POST to a mounted handler: status %d", w.Code)
	}
	got := e.asked()
	if len(got) != 1 || !strings.HasPrefix(got[0], "capacity") {
		t.Errorf("the engine was asked %v, want what changes nothing", got)
	}
	if w := ask(h, "GET", "/sim/bay/1", ""); w.Code != http.StatusOK || len(e.asked()) != 2 {
		t.Errorf("GET of a mounted handler: status %d", w.Code)
	}
}

func TestEveryChangeIsPrivileged(t *testing.T) {
	for _, r := range routes {
		if r.method != http.MethodGet && !r.privileged {
			t.Errorf("%s %s is open to everybody", r.method, r.path)
		}
	}
}

func TestErrorCodes(t *testing.T) {
	for _, c := range codes {
		e := newEngine(1)
		e.fail = fmt.Errorf("drive sda: %w", c.err)
		w := ask(full(e).Handler(false), "POST", "/api/v1/refresh", "")
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.code) || !strings.Contains(w.Body.String(), "drive sda") {
			t.Errorf("%v: status %d %s", c.err, w.Code, w.Body)
		}
	}
	e := newEngine(1)
	e.fail = errors.New("something else")
	if w := ask(full(e).Handler(false), "POST", "/api/v1/refresh", ""); w.Code != 500 || !strings.Contains(w.Body.String(), `"internal"`) {
		t.Errorf("another error: status %d %s", w.Code, w.Body)
	}
}

func TestPanicIsOneAnswer(t *testing.T) {
	var log strings.Builder
	e := newEngine(1)
	e.during = func(context.Context) { panic("a bug") }
	s := New(e, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	h := s.Handler(false)
	w := ask(h, "POST", "/api/v1/refresh", "")
	if w.Code != 500 || strings.Contains(w.Body.String(), "a bug") || !strings.Contains(w.Body.String(), `"code":"internal"`) {
		t.Errorf("status %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "a bug") || !strings.Contains(log.String(), "api_test.go") {
		t.Errorf("the log has no stack: %s", &log)
	}
	if w := ask(h, "GET", "/healthz", ""); w.Code != 200 {
		t.Errorf("after the panic: status %d", w.Code)
	}
}

func TestNotReady(t *testing.T) {
	e := newEngine(0)
	s := New(e, Options{Ready: func() []string { return []string{"the store cannot be written"} }})
	w := ask(s.Handler(false), "GET", "/readyz", "")
	var got Status
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 503 || len(got.Reasons) != 2 {
		t.Errorf("status %d %s", w.Code, w.Body)
	}
	if w := ask(s.Handler(false), "GET", "/metrics", ""); w.Code != 501 {
		t.Errorf("no metrics: status %d", w.Code)
	}
}

func TestEncodedOnce(t *testing.T) {
	e := newEngine(1)
	s := full(e)
	h := s.Handler(false)
	first := ask(h, "GET", "/api/v1/snapshot", "").Body.Bytes()
	kept := s.cache["snapshot"].body
	ask(h, "GET", "/api/v1/snapshot", "")
	if &kept[0] != &s.cache["snapshot"].body[0] {
		t.Error("the same snapshot was encoded twice")
	}
	e.advance()
	if second := ask(h, "GET", "/api/v1/snapshot", "").Body.Bytes(); reflect.DeepEqual(first, second) {
		t.Error("the next snapshot was not shown")
	}
}

func TestEventsLimit(t *testing.T) {
	e := newEngine(1)
	for i := range uint64(5) {
		e.events = append(e.events, drivebay.Event{Seq: i + 1})
	}
	w := ask(full(e).Handler(false), "GET", "/api/v1/events?after=1&limit=2&wait=1h", "")
	var got EventList
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Last != 3 || len(got.Events) != 2 || got.Events[0].Seq != 2 {
		t.Errorf("%s", w.Body)
	}
}
