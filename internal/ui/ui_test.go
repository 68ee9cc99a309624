package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// engine is one drive in a bay, and what was done to it.
type engine struct {
	done []string
	fail error
}

func (e *engine) Snapshot() *drivebay.Snapshot {
	return &drivebay.Snapshot{Seq: 1, Drives: []drivebay.Drive{{ID: "naa-1", Identity: drivebay.Identity{Serial: "S1"}, Slot: drivebay.Slot{Enclosure: "e", Bay: "Slot 01"}}}}
}
func (e *engine) did(format string, args ...any) error {
	e.done = append(e.done, fmt.Sprintf(format, args...))
	return e.fail
}
func (e *engine) Locate(_ context.Context, bay string, on bool) error {
	return e.did("locate %s %v", bay, on)
}
func (e *engine) Cordon(_ context.Context, d string, on bool) error {
	return e.did("cordon %s %v", d, on)
}
func (e *engine) Claim(_ context.Context, d string, on bool) error {
	return e.did("claim %s %v", d, on)
}
func (e *engine) Operate(_ context.Context, d string, do drivebay.LeaveVerb, _ string) error {
	return e.did("%s %s", do, d)
}

// site is a page behind its gate, on the wire.
type site struct {
	*testing.T
	engine  *engine
	version atomic.Uint64
	stop    chan struct{}
	gate    *Gate
	addr    string
	clock   atomic.Int64
	cookie  string
	token   string
}

func newSite(t *testing.T) *site {
	s := &site{T: t, engine: &engine{}, stop: make(chan struct{})}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.version.Store(1)
	page := New(Options{Engine: s.engine, Version: s.version.Load, State: s.state, Stopping: s.stop})
	s.addr = l.Addr().String()
	s.gate = NewGate(s.addr, "drivebay ui", func() time.Time { return time.Unix(s.clock.Load(), 0) }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/ui/") {
			page.ServeHTTP(w, r)
			return
		}
		fmt.Fprintf(w, "api %s %s cookie=%q token=%q", r.Method, r.URL.Path, r.Header.Get("Cookie"), r.Header.Get(actionHeader))
	}))
	srv := &http.Server{Handler: s.gate}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	return s
}

// state is a head and two parts, of which one changes with the version.
func (s *site) state() State {
	n := s.version.Load()
	return State{Head: map[string]uint64{"n": n}, Parts: []Part{{"a", map[string]string{"part": "same"}}, {"b", map[string]uint64{"part": n}}}}
}

// ask sends a request with headers "Name: value", and returns the answer with its body.
func (s *site) ask(method, path, body string, headers ...string) (*http.Response, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, ""
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp, string(text)
}

func (s *site) same() string { return "Origin: http://" + s.addr }

// enter opens the link as a browser does.
func (s *site) enter() {
	s.Helper()
	_, token, _ := strings.Cut(s.gate.Link(), "#")
	resp, body := s.ask("POST", "/ui/session", "", s.same(), actionHeader+": "+token)
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 {
		s.Fatalf("%d %s", resp.StatusCode, body)
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(body, c.Value) {
		s.Errorf("%+v, %s", c, body)
	}
	s.cookie = "Cookie: " + c.Name + "=" + c.Value
	s.token = actionHeader + ": " + strings.Split(body, `"`)[3]
}

const lightOn = `{"do":"locate","on":true,"drive":"naa-1","bay":"Slot 01","serial":"S1"}`

// Without the link nothing is read and nothing is done; the files of the page say nothing about the machine.
func TestNoAccess(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/ui/state", "/api/v1/drives/naa-1", "/ui/actions", "/metrics", "/ui/nothing.js"} {
		for _, cookie := range []string{"Cookie: ", "Cookie: drivebay-" + s.addr[strings.LastIndex(s.addr, ":")+1:] + "=", "Cookie: drivebay=x"} {
			if resp, body := s.ask("GET", path, "", cookie); resp.StatusCode != 401 {
				t.Errorf("%s with %q: %d %s", path, cookie, resp.StatusCode, body)
			}
		}
	}
	if resp, body := s.ask("POST", "/ui/actions", lightOn, s.same(), "Content-Type: application/json"); resp.StatusCode != 401 || s.engine.done != nil {
		t.Errorf("an action: %d %s, done %v", resp.StatusCode, body, s.engine.done)
	}
	if resp, body := s.ask("GET", "/ui/", ""); resp.StatusCode != 200 || !strings.Contains(body, "<title>drivebay</title>") {
		t.Errorf("the page: %d", resp.StatusCode)
	}
}

// The link opens once, and not after ten minutes.
func TestLink(t *testing.T) {
	s := newSite(t)
	_, token, _ := strings.Cut(s.gate.Link(), "#")
	if resp, _ := s.ask("POST", "/ui/session", "", s.same(), actionHeader+": wrong"); resp.StatusCode != 401 {
		t.Errorf("a wrong token: %d", resp.StatusCode)
	}
	if resp, _ := s.ask("POST", "/ui/session", "", s.same(), actionHeader+": "); resp.StatusCode != 401 {
		t.Errorf("no token: %d", resp.StatusCode)
	}
	s.enter()
	if resp, _ := s.ask("POST", "/ui/session", "", s.same(), actionHeader+": "+token); resp.StatusCode != 401 || len(resp.Cookies()) != 0 {
		t.Errorf("a second time: %d", resp.StatusCode)
	}
	if resp, _ := s.ask("POST", "/ui/session", "", s.same(), actionHeader+": "); resp.StatusCode != 401 {
		t.Errorf("no token, after the link was opened: %d", resp.StatusCode)
	}
	if resp, body := s.ask("GET", "/api/v1/drives/naa-1", "", s.cookie); resp.StatusCode != 200 || body != `api GET /api/v1/drives/naa-1 cookie="" token=""` {
		t.Errorf("with the cookie: %d %s", resp.StatusCode, body)
	}
	if resp, _ := s.ask("GET", "/api/v1/volumes", "", s.cookie); resp.StatusCode != 404 {
		t.Errorf("what the page does not need: %d", resp.StatusCode)
	}
	late := newSite(t)
	late.clock.Store(int64(linkTime/time.Second) + 1)
	_, token, _ = strings.Cut(late.gate.Link(), "#")
	if resp, _ := late.ask("POST", "/ui/session", "", late.same(), actionHeader+": "+token); resp.StatusCode != 401 {
		t.Errorf("after the time: %d", resp.StatusCode)
	}
}

// A page whose name resolves to this machine has another host (DNS rebinding).
func TestRebinding(t *testing.T) {
	s := newSite(t)
	s.enter()
	port := s.addr[strings.LastIndex(s.addr, ":"):]
	for _, host := range []string{"attacker.example", "attacker.example" + port, "localhost" + port, "127.0.0.1", "127.0.0.1:1", "[::1]" + port} {
		for _, path := range []string{"/", "/ui/", "/ui/state", "/api/v1/drives/naa-1"} {
			if resp, _ := s.ask("GET", path, "", "Host: "+host, s.cookie); resp.StatusCode != 421 {
				t.Errorf("Host %q, %s: %d", host, path, resp.StatusCode)
			}
		}
		if resp, _ := s.ask("POST", "/ui/actions", lightOn, "Host: "+host, s.same(), s.cookie, s.token, "Content-Type: application/json"); resp.StatusCode != 421 {
			t.Errorf("Host %q, an action: %d", host, resp.StatusCode)
		}
	}
	if s.engine.done != nil {
		t.Errorf("done: %v", s.engine.done)
	}
}

// A page of another origin acts on nothing, whatever a browser sends along (CSRF).
func TestForgery(t *testing.T) {
	s := newSite(t)
	s.enter()
	json := "Content-Type: application/json"
	for name, headers := range map[string][]string{
		"no origin":         {s.cookie, s.token, json},
		"null":              {s.cookie, s.token, json, "Origin: null"},
		"another":           {s.cookie, s.token, json, "Origin: http://attacker.example"},
		"another port":      {s.cookie, s.token, json, "Origin: http://127.0.0.1:1"},
		"another scheme":    {s.cookie, s.token, json, "Origin: https://" + s.addr},
		"same site":         {s.cookie, s.token, json, s.same(), "Sec-Fetch-Site: same-site"},
		"cross site":        {s.cookie, s.token, json, s.same(), "Sec-Fetch-Site: cross-site"},
		"no token":          {s.cookie, json, s.same()},
		"a wrong token":     {s.cookie, json, s.same(), actionHeader + ": x"},
		"the cookie's":      {s.cookie, json, s.same(), actionHeader + ": " + s.gate.session},
		"a form":            {s.cookie, s.token, s.same(), "Content-Type: application/x-www-form-urlencoded"},
		"a form with token": {s.cookie, s.token, s.same(), "Content-Type: text/plain"},
	} {
		if resp, body := s.ask("POST", "/ui/actions", lightOn, headers...); resp.StatusCode != 403 && resp.StatusCode != 415 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "POST"} {
		if resp, _ := s.ask(method, "/api/v1/drives/naa-1/leave", lightOn, s.cookie, s.token, s.same(), json); resp.StatusCode != 403 {
			t.Errorf("%s of the API: %d", method, resp.StatusCode)
		}
	}
	for _, from := range []string{"cross-site", "same-site"} {
		if resp, _ := s.ask("GET", "/api/v1/drives/naa-1", "", s.cookie, "Sec-Fetch-Site: "+from); resp.StatusCode != 403 {
			t.Errorf("a reading %s: %d", from, resp.StatusCode)
		}
	}
	if s.engine.done != nil {
		t.Errorf("done: %v", s.engine.done)
	}
	if resp, body := s.ask("POST", "/ui/actions", lightOn, s.cookie, s.token, s.same(), json, "Sec-Fetch-Site: same-origin"); resp.StatusCode != 204 || fmt.Sprint(s.engine.done) != "[locate e/Slot 01 true]" {
		t.Errorf("the page itself: %d %s, done %v", resp.StatusCode, body, s.engine.done)
	}
}

// No answer can be shown in a frame (clickjacking), is taken for another type, or is kept.
func TestHeaders(t *testing.T) {
	s := newSite(t)
	s.enter()
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/ui/": "text/html; charset=utf-8", "/ui/app.js": "text/javascript; charset=utf-8", "/ui/page.css": "text/css; charset=utf-8", "/ui/icon.svg": "image/svg+xml",
		"/ui/state": "text/event-stream; charset=utf-8", "/ui/none": "application/json", "/ui/open.html": "text/html; charset=utf-8",
	} {
		resp, _ := s.ask("GET", path, "", s.cookie)
		policy := resp.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s: %s", path, want, policy)
			}
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Content-Type": kind} {
			if is := resp.Header.Get(name); is != want {
				t.Errorf("%s: %s is %q", path, name, is)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
	}
}

// An action is done only to the drive that was confirmed, by bay and serial number.
func TestConfirmation(t *testing.T) {
	s := newSite(t)
	page := New(Options{Engine: s.engine})
	post := func(body string) (int, string) {
		r := httptest.NewRequest("POST", "/ui/actions", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for body, want := range map[string]int{
		`{"do":"release","drive":"naa-1","bay":"Slot 02","serial":"S1"}`:               409,
		`{"do":"release","drive":"naa-1","bay":"Slot 01","serial":"S2"}`:               409,
		`{"do":"release","drive":"naa-1"}`:                                             409,
		`{"do":"release","drive":"naa-2","bay":"Slot 01","serial":"S1"}`:               409,
		`{"do":"force","drive":"naa-1","bay":"Slot 01","serial":"S1"}`:                 422,
		`{"do":"forget","drive":"naa-1","bay":"Slot 01","serial":"S1"}`:                422,
		`{"do":"","drive":"naa-1","bay":"Slot 01","serial":"S1"}`:                      422,
		`{"do":"release","drive":"naa-1","bay":"Slot 01","serial":"S1","force":true}`:  400,
		`{"do":"release","drive":"naa-1","bay":"Slot 01","serial":"S1"` + spaces(5000): 400,
		``: 400,
	} {
		if code, text := post(body); code != want {
			t.Errorf("%.80s: %d %s", body, code, text)
		}
	}
	if s.engine.done != nil {
		t.Fatalf("done: %v", s.engine.done)
	}
	for _, do := range []string{"release", "approve", "cancel", "retry", "accept", "cordon", "claim"} {
		if code, text := post(`{"do":"` + do + `","on":true,"drive":"naa-1","bay":"Slot 01","serial":"S1"}`); code != 204 {
			t.Errorf("%s: %d %s", do, code, text)
		}
	}
	if is := strings.Join(s.engine.done, ", "); is != "release naa-1, approve naa-1, cancel naa-1, retry naa-1, accept naa-1, cordon naa-1 true, claim naa-1 true" {
		t.Errorf("done: %s", is)
	}
	s.engine.fail = errors.New("it has to stay")
	if code, text := post(`{"do":"release","drive":"naa-1","bay":"Slot 01","serial":"S1"}`); code != 422 || !strings.Contains(text, "it has to stay") {
		t.Errorf("a refusal of the engine: %d %s", code, text)
	}
}

func spaces(n int) string { return strings.Repeat(" ", n) + "}" }

// A stream begins with the state, sends it again when it changes, and ends with the daemon.
func TestStream(t *testing.T) {
	s := newSite(t)
	s.enter()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.addr+"/ui/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", strings.TrimPrefix(s.cookie, "Cookie: "))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		return "end"
	}
	for _, want := range []string{"event: part", `data: {"part":"same"}`, "event: part", `data: {"part":1}`, `data: {"n":1}`} {
		if is := next(); is != want {
			t.Errorf("first: %s, want %s", is, want)
		}
	}
	s.version.Store(2)
	for _, want := range []string{"event: part", `data: {"part":2}`, `data: {"n":2}`} { // the part that is the same is not sent again
		if is := next(); is != want {
			t.Errorf("then: %s, want %s", is, want)
		}
	}
	close(s.stop)
	if is := next(); is != "end" {
		t.Errorf("at last: %s", is)
	}
}

// A page without an engine only reads, and shows the drives that it knows.
func TestOnlyReads(t *testing.T) {
	p := New(Options{Version: func() uint64 { return 1 }, State: func() State { return State{} }, Drive: func(id string) any {
		if id == "naa-1.n1" {
			return map[string]string{"id": id}
		}
		return nil
	}})
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"POST", "/ui/actions", http.StatusForbidden, "only reads"},
		{"GET", "/ui/drives/naa-1.n1", http.StatusOK, `{"id":"naa-1.n1"}`},
		{"GET", "/ui/drives/naa-2.n1", http.StatusNotFound, "not known"},
		{"POST", "/ui/drives/naa-1.n1", http.StatusMethodNotAllowed, "only read"},
	} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(`{"do":"release","drive":"naa-1.n1","bay":"","serial":""}`)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
}

// All files together are small, and every file of the folder has a type.
func TestFiles(t *testing.T) {
	names, err := web.ReadDir("web")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range names {
		f, ok := files()[n.Name()]
		if !ok {
			t.Errorf("%s has no type", n.Name())
		}
		sum += len(f.small)
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://fonts", "https://"} {
			if strings.Contains(string(f.plain), bad) {
				t.Errorf("%s has %s", n.Name(), bad)
			}
		}
	}
	if sum == 0 || sum > 150<<10 {
		t.Errorf("%d bytes", sum)
	}
	t.Logf("%d bytes compressed", sum)
}
