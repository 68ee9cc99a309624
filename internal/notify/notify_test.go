package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// node is a machine with one drive and a list of events.
type node struct {
	mu     sync.Mutex
	events []drivebay.Event
	grew   chan struct{}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newNode() *node { return &node{grew: make(chan struct{})} }

func (n *node) Snapshot() *drivebay.Snapshot {
	d := drivebay.Drive{ID: "naa-1", Name: "sda", Health: drivebay.HealthBad, Slot: drivebay.Slot{Bay: "13"}}
	d.Model, d.Serial = "ST4000", "Z1"
	return &drivebay.Snapshot{Seq: 1, Machine: drivebay.Machine{Name: "node-1", Hardware: &drivebay.Hardware{Vendor: "ACME", Product: "R740"}}, Drives: []drivebay.Drive{d}}
}

func (n *node) Wait(ctx context.Context, _ uint64) (*drivebay.Snapshot, error) {
	return n.Snapshot(), ctx.Err()
}

func (n *node) Events(after uint64, _ int) []drivebay.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.events), func(e drivebay.Event) bool { return e.Seq <= after })
}

func (n *node) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	for {
		n.mu.Lock()
		grew := n.grew
		n.mu.Unlock()
		if events := n.Events(after, 0); len(events) > 0 {
			return events, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// happens adds events; each is a second after the one before.
func (n *node) happens(events ...drivebay.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range events {
		e.Seq = uint64(len(n.events) + 1)
		if e.At.IsZero() {
			e.At = start.Add(time.Duration(e.Seq) * time.Second)
		}
		n.events = append(n.events, e)
	}
	close(n.grew)
	n.grew = make(chan struct{})
}

var (
	turnedBad  = drivebay.Event{Kind: drivebay.EventHealth, Drive: "naa-1", From: "GOOD", To: "BAD", Cause: "it failed"}
	turnedGood = drivebay.Event{Kind: drivebay.EventHealth, Drive: "naa-1", From: "BAD", To: "GOOD", Cause: "it works"}
	abnormal   = drivebay.Event{Kind: drivebay.EventVolumeAbnormal, Volume: "vol-1", To: "DriveBad", Cause: "its drive is BAD"}
)

// clock is a clock whose waits end at once and are counted.
type clock struct {
	mu    sync.Mutex
	waits []time.Duration
	hold  chan struct{} // a wait lasts until it is closed; nil: no time
}

func (c *clock) Now() time.Time { return start }

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	c.waits = append(c.waits, d)
	c.mu.Unlock()
	over := make(chan time.Time, 1)
	if c.hold == nil {
		over <- start
		return over
	}
	go func() { <-c.hold; over <- start }()
	return over
}

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// options returns options with a log, a clock and a cursor of this test.
func options(t *testing.T) (Options, *logged, *clock) {
	log, c := &logged{}, &clock{}
	return Options{Timeout: 5 * time.Second, Cursor: filepath.Join(t.TempDir(), "cursor.json"), Clock: c, Version: "1",
		Log: slog.New(slog.NewTextHandler(log, nil))}, log, c
}

// run runs a notifier until the test stops it.
func run(t *testing.T, n *node, opt Options) (notifier *Notifier, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	notifier = New(n, opt)
	ended := make(chan error, 1)
	go func() { ended <- notifier.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return notifier, stop
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not seen: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// receiver is a real HTTP server. Its answers are the functions of a list, in order; the last one stays.
type receiver struct {
	mu      sync.Mutex
	got     []Notice // those that were answered with 200
	answers []http.HandlerFunc
	asked   int
	wrong   []string // signatures
}

const secret = "the-secret-of-the-webhook"

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var n Notice
	err = errors.Join(err, json.Unmarshal(body, &n))
	r.mu.Lock()
	if s := req.Header.Get(HeaderSignature); err != nil || s != Sign([]byte(secret), req.Header.Get(HeaderTime), body) ||
		req.Header.Get(HeaderTime) != fmt.Sprint(start.Unix()) || req.Header.Get(HeaderNotice) != n.ID || req.Method != "POST" || req.Header.Get("Content-Type") != "application/json" {
		r.wrong = append(r.wrong, fmt.Sprintf("%v %v %s", err, req.Header, body))
	}
	answer := ok
	if len(r.answers) > 0 {
		answer = r.answers[min(r.asked, len(r.answers)-1)]
	}
	r.asked++
	r.mu.Unlock()
	rec := &status{ResponseWriter: w}
	answer(rec, req)
	if rec.code == http.StatusOK {
		r.mu.Lock()
		r.got = append(r.got, n)
		r.mu.Unlock()
	}
}

func (r *receiver) ids() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.got {
		ids = append(ids, n.ID)
	}
	return ids
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) { s.code = code; s.ResponseWriter.WriteHeader(code) }

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func answers(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func slow(w http.ResponseWriter, r *http.Request) {
	w.(*status).ResponseWriter.(http.Flusher).Flush()
	select {
	case <-time.After(200 * time.Millisecond):
	case <-r.Context().Done():
	}
	w.(*status).code = http.StatusOK
}

func serve(t *testing.T, r *receiver, opt *Options) {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	opt.Webhook, opt.SecretFile = server.URL+"/hook/path-that-is-secret", filepath.Join(t.TempDir(), "secret")
	write(t, opt.SecretFile, secret+"\n", 0o600)
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, w := range r.wrong {
			t.Errorf("signature or headers: %s", w)
		}
	})
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// A notice is sent again until the receiver takes it, in order, with growing delays; no other address
// gets it.
func TestWebhookRetries(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}
	opt, log, c := options(t)
	opt.Timeout = 3 * time.Second
	r := &receiver{answers: []http.HandlerFunc{answers(500), redirect, hangs, answers(401), slow, ok}}
	serve(t, r, &opt)
	n := newNode()
	notifier, stop := run(t, n, opt)
	n.happens(turnedBad, drivebay.Event{Kind: drivebay.EventLocate, Drive: "naa-1"}, abnormal, turnedGood)
	until(t, "all notices", func() bool { return len(r.ids()) == 3 })
	until(t, "an empty queue", func() bool { return notifier.Counts()[0].Queued == 0 })
	stop()
	if ids := r.ids(); !slices.Equal(ids, []string{"node-1/1", "node-1/3", "node-1/4"}) {
		t.Errorf("delivered %v", ids)
	}
	if got := notifier.Counts()[0]; got != (Count{Sink: "webhook", Delivered: 3, Failed: 4}) {
		t.Errorf("%+v", got)
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}; !slices.Equal(c.waits, want) {
		t.Errorf("waits %v, want %v", c.waits, want)
	}
	bad := r.got[0]
	if bad.Kind != KindBad || bad.Version != 1 || bad.Machine != "node-1" || bad.Server != "server ACME R740" || bad.Drive == nil || bad.Drive.Bay != "13" || bad.Drive.Serial != "Z1" ||
		bad.Summary != "node-1: drive sda: BAD: it failed" || bad.Next != "drivebay explain naa-1" || bad.From != "GOOD" {
		t.Errorf("%+v", bad)
	}
	for _, private := range []string{secret, "path-that-is-secret"} {
		if strings.Contains(log.String(), private) {
			t.Errorf("the log contains %q:\n%s", private, log)
		}
	}
}

// A receiver that refuses a notice does not block the next one.
func TestWebhookRefuses(t *testing.T) {
	opt, _, _ := options(t)
	r := &receiver{answers: []http.HandlerFunc{answers(400), ok}}
	serve(t, r, &opt)
	n := newNode()
	notifier, _ := run(t, n, opt)
	n.happens(turnedBad, turnedGood)
	until(t, "the second notice", func() bool { return slices.Equal(r.ids(), []string{"node-1/2"}) })
	until(t, "counts", func() bool {
		return notifier.Counts()[0] == Count{Sink: "webhook", Delivered: 1, Failed: 1, Dropped: 1}
	})
}

// A full queue drops the oldest notices, and the engine never waits.
func TestQueueIsBounded(t *testing.T) {
	opt, log, c := options(t)
	c.hold = make(chan struct{})
	r := &receiver{answers: []http.HandlerFunc{answers(503), ok}}
	serve(t, r, &opt)
	n := newNode()
	notifier, _ := run(t, n, opt)
	n.happens(turnedBad)
	until(t, "the first failure", func() bool { return notifier.Counts()[0].Failed == 1 })
	for range maxQueue + 49 {
		n.happens(abnormal)
	}
	until(t, "drops", func() bool { return notifier.Counts()[0].Dropped == 50 })
	close(c.hold)
	until(t, "the rest", func() bool { return len(r.ids()) == maxQueue })
	if ids := r.ids(); ids[0] != "node-1/51" || ids[maxQueue-1] != fmt.Sprintf("node-1/%d", maxQueue+50) {
		t.Errorf("first %s, last %s", ids[0], ids[maxQueue-1])
	}
	if !strings.Contains(log.String(), "too many wait") {
		t.Error("the log does not name what was dropped")
	}
}

func TestKindsAreSelected(t *testing.T) {
	opt, _, _ := options(t)
	opt.Kinds = []Kind{KindAbnormal}
	r := &receiver{}
	serve(t, r, &opt)
	n := newNode()
	run(t, n, opt)
	n.happens(turnedBad, abnormal, turnedGood, abnormal)
	until(t, "the abnormal volumes", func() bool { return slices.Equal(r.ids(), []string{"node-1/2", "node-1/4"}) })
}

// A drive that was BAD recovers also if it was UNKNOWN in between, and if the daemon was restarted
// meanwhile. A drive that was only UNKNOWN, or was forgotten, does not.
func TestRecoversFromUnknown(t *testing.T) {
	opt, _, _ := options(t)
	r := &receiver{}
	serve(t, r, &opt)
	n := newNode()
	health := func(drive, from, to string) drivebay.Event {
		return drivebay.Event{Kind: drivebay.EventHealth, Drive: drive, From: from, To: to}
	}
	notifier, stop := run(t, n, opt)
	n.happens(health("naa-1", "GOOD", "SUSPECT"), health("naa-1", "SUSPECT", "UNKNOWN"),
		health("naa-2", "GOOD", "BAD"), health("naa-2", "BAD", "UNKNOWN"), drivebay.Event{Kind: drivebay.EventForgotten, Drive: "naa-2"})
	until(t, "the faults", func() bool {
		return slices.Equal(r.ids(), []string{"node-1/1", "node-1/3"}) && notifier.Counts()[0].Queued == 0
	})
	stop()
	run(t, n, opt)
	n.happens(health("naa-1", "UNKNOWN", "GOOD"), health("naa-1", "GOOD", "UNKNOWN"), health("naa-1", "UNKNOWN", "GOOD"),
		health("naa-2", "UNKNOWN", "GOOD"), health("naa-3", "UNKNOWN", "GOOD"), abnormal)
	until(t, "the last event", func() bool { return slices.Contains(r.ids(), "node-1/11") })
	if ids := r.ids(); !slices.Equal(ids, []string{"node-1/1", "node-1/3", "node-1/6", "node-1/11"}) || r.got[2].Kind != KindRecovered {
		t.Errorf("delivered %v", ids)
	}
}

// Over a restart no notice is sent twice and none is lost, also if events have their numbers again.
func TestRestart(t *testing.T) {
	opt, _, _ := options(t)
	r := &receiver{}
	serve(t, r, &opt)
	n := newNode()
	n.happens(drivebay.Event{Kind: drivebay.EventHealth, To: "BAD", At: start.Add(-time.Hour)}) // before there was a webhook
	notifier, stop := run(t, n, opt)
	n.happens(turnedBad, abnormal)
	until(t, "the first run", func() bool {
		return slices.Equal(r.ids(), []string{"node-1/2", "node-1/3"}) && notifier.Counts()[0].Queued == 0
	})
	stop()
	n.happens(turnedGood) // while no notifier runs
	_, stop = run(t, n, opt)
	until(t, "the second run", func() bool { return slices.Equal(r.ids(), []string{"node-1/2", "node-1/3", "node-1/4"}) })
	stop()
	again := newNode() // the store was replaced: its events have other times
	late := turnedBad
	late.At = start.Add(time.Hour)
	again.happens(late)
	run(t, again, opt)
	until(t, "the replaced store", func() bool { return slices.Equal(r.ids(), []string{"node-1/2", "node-1/3", "node-1/4", "node-1/1"}) })
}

// A notice is old by how long it waits, not by the time of its event: the clock of a machine whose battery is empty begins in the
// past, and is set once the network is there.
func TestNoticeOfAClockThatWasBehind(t *testing.T) {
	opt, _, _ := options(t)
	r := &receiver{answers: []http.HandlerFunc{answers(500), ok}}
	serve(t, r, &opt)
	n := newNode()
	notifier, _ := run(t, n, opt)
	until(t, "the start", func() bool { _, err := os.Stat(opt.Cursor); return err == nil })
	early := turnedBad
	early.At = start.AddDate(-26, 0, 0)
	n.happens(early)
	until(t, "the end", func() bool { c := notifier.Counts()[0]; return c.Delivered+c.Dropped == 1 })
	if got := notifier.Counts()[0]; got.Delivered != 1 {
		t.Errorf("%+v", got)
	}
}

// A sink that is new while the clock is ahead gets the events after the clock is right, also over a restart.
func TestNewSinkOfAClockThatIsAhead(t *testing.T) {
	opt, _, _ := options(t)
	r := &receiver{}
	serve(t, r, &opt)
	n := newNode()
	n.happens(drivebay.Event{Kind: drivebay.EventHealth, To: "BAD", At: start.AddDate(-2, 0, 0)}) // before there was a webhook
	notifier, stop := run(t, n, opt)
	until(t, "the start", func() bool { _, err := os.Stat(opt.Cursor); return err == nil })
	corrected := turnedBad
	corrected.At = start.AddDate(-1, 0, 0)
	n.happens(corrected)
	until(t, "the first run", func() bool {
		return slices.Equal(r.ids(), []string{"node-1/2"}) && notifier.Counts()[0].Queued == 0
	})
	stop()
	corrected = abnormal
	corrected.At = start.AddDate(-1, 0, 1)
	n.happens(corrected)
	run(t, n, opt)
	until(t, "the second run", func() bool { return slices.Equal(r.ids(), []string{"node-1/2", "node-1/3"}) })
}

// A notice that waits is not forgotten by a restart.
func TestRestartWhileWaiting(t *testing.T) {
	opt, _, c := options(t)
	c.hold = make(chan struct{})
	r := &receiver{answers: []http.HandlerFunc{answers(500), ok}}
	serve(t, r, &opt)
	n := newNode()
	notifier, stop := run(t, n, opt)
	n.happens(turnedBad)
	until(t, "a failure", func() bool { return notifier.Counts()[0].Failed == 1 })
	stop()
	run(t, n, opt)
	until(t, "the notice", func() bool { return slices.Equal(r.ids(), []string{"node-1/1"}) })
}

// The certificate of the receiver is checked, by the configured authorities only.
func TestWebhookTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(ok))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer server.Close()
	opt, _, _ := options(t)
	opt.Webhook = server.URL
	if got := New(newNode(), opt).Trial(t.Context()); len(got) != 1 || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "certificate") {
		t.Errorf("unknown authority: %v", got)
	}
	opt.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	write(t, opt.CAFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), 0o600)
	if got := New(newNode(), opt).Trial(t.Context()); got[0].Err != nil {
		t.Errorf("known authority: %v", got[0].Err)
	}
	write(t, opt.CAFile, "no certificate", 0o600)
	if got := New(newNode(), opt).Trial(t.Context()); got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "contains none") {
		t.Errorf("no certificate: %v", got[0].Err)
	}
}

// Without its secret nothing is sent.
func TestWebhookSecret(t *testing.T) {
	for text, want := range map[string]string{"": "is empty", " \n": "is empty", strings.Repeat("x", maxSecret+1): "larger"} {
		opt, _, _ := options(t)
		r := &receiver{}
		serve(t, r, &opt)
		write(t, opt.SecretFile, text, 0o600)
		if got := New(newNode(), opt).Trial(t.Context())[0]; got.Err == nil || !strings.Contains(got.Err.Error(), want) || r.asked != 0 {
			t.Errorf("secret of %d bytes: %v, %d requests", len(text), got.Err, r.asked)
		}
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "page.sh")
	write(t, script, `#!/bin/sh
[ $# = 2 ] && [ "$1" = "--team" ] && [ "$2" = 'a b; $(exit 1)' ] || exit 2
cat >"`+dir+`/$$.json"
if [ ! -e "`+dir+`/failed" ]; then touch "`+dir+`/failed"; echo "the pager is busy" >&2; exit 75; fi
`, 0o600)
	opt, log, _ := options(t)
	opt.Command = []string{"/bin/sh", script, "--team", "a b; $(exit 1)"}
	n := newNode()
	notifier, _ := run(t, n, opt)
	n.happens(turnedBad)
	until(t, "delivery", func() bool { return notifier.Counts()[0] == Count{Sink: "command", Delivered: 1, Failed: 1} })
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		var got Notice
		if err = errors.Join(err, json.Unmarshal(b, &got)); err != nil || got.ID != "node-1/1" || got.Kind != KindBad {
			t.Errorf("%v: %s", err, b)
		}
	}
	if !strings.Contains(log.String(), "the pager is busy") {
		t.Errorf("the log lacks the output of the command:\n%s", log)
	}
}

// A command that does not end is killed with all that it started; its output is bounded; one that
// reads nothing, or leaves something running, has done its work.
func TestCommandsMisbehave(t *testing.T) {
	dir := t.TempDir()
	for name, row := range map[string]struct{ script, want string }{
		"hangs":       {`sleep 60 & echo $! >` + dir + `/child; wait`, "no end within"},
		"floods":      {`head -c 3000000 /dev/zero | tr '\0' x; exit 1`, "exit status 1: xxx"},
		"no reader":   {`exec <&-; exit 0`, ""},
		"leaves one":  {`sleep 3 & exit 0`, ""},
		"not a file":  {"", "no such file"},
		"by a signal": {`kill -9 $$`, "killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Not a script of its own: a file that was just written is busy while another test that runs a
			// program at that moment holds a copy of its descriptor (golang/go issue 22315).
			opt, _, _ := options(t)
			opt.Command, opt.Timeout = []string{"/bin/sh", "-c", row.script}, 20*time.Second
			if row.script == "" {
				opt.Command = []string{filepath.Join(t.TempDir(), "absent")}
			}
			if name == "hangs" {
				opt.Timeout = 2 * time.Second
			}
			got := New(newNode(), opt).Trial(t.Context())[0]
			if (row.want == "") != (got.Err == nil) || got.Err != nil && !strings.Contains(got.Err.Error(), row.want) {
				t.Errorf("%.300v", got.Err)
			}
			if got.Err != nil && len(got.Err.Error()) > maxOutput+1000 {
				t.Errorf("an error of %d bytes", len(got.Err.Error()))
			}
			if name != "hangs" {
				return
			}
			b, err := os.ReadFile(dir + "/child")
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the end of the child", func() bool {
				stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
				return err != nil || strings.Contains(string(stat), ") Z ")
			})
		})
	}
}

func TestKindOf(t *testing.T) {
	for _, row := range []struct {
		e    drivebay.Event
		want Kind
	}{
		{turnedBad, KindBad},
		{drivebay.Event{Kind: drivebay.EventHealth, From: "UNKNOWN", To: "SUSPECT"}, KindSuspect},
		{turnedGood, KindRecovered},
		{drivebay.Event{Kind: drivebay.EventHealth, From: "UNKNOWN", To: "GOOD"}, ""},
		{drivebay.Event{Kind: drivebay.EventHealth, From: "GOOD", To: "UNKNOWN"}, ""},
		{abnormal, KindAbnormal},
		{drivebay.Event{Kind: drivebay.EventVolumeRecovered}, KindRecovered},
		{drivebay.Event{Kind: drivebay.EventUsage, From: "RELEASING", To: "RELEASED"}, KindHands},
		{drivebay.Event{Kind: drivebay.EventUsage, From: "RELEASING", To: "FAILED"}, KindHands},
		{drivebay.Event{Kind: drivebay.EventUsage, From: "REMOVED", To: "REMOVED"}, ""}, // continued after a restart
		{drivebay.Event{Kind: drivebay.EventUsage, From: "IN_USE", To: "RELEASING"}, ""},
		{drivebay.Event{Kind: drivebay.EventWrongPulled}, KindHands},
		{drivebay.Event{Kind: drivebay.EventStoreFailed}, KindHands},
		{drivebay.Event{Kind: drivebay.EventLocate}, ""},
	} {
		if got := kindOf(row.e, faults{}); got != row.want {
			t.Errorf("%+v: %q, want %q", row.e, got, row.want)
		}
	}
}

// A file of cursors that cannot be read or written costs no notice of this run.
func TestCursorFails(t *testing.T) {
	opt, log, _ := options(t)
	opt.Cursor = filepath.Join(t.TempDir(), "missing", "cursor.json")
	r := &receiver{}
	serve(t, r, &opt)
	n := newNode()
	run(t, n, opt)
	n.happens(turnedBad)
	until(t, "the notice", func() bool { return len(r.ids()) == 1 })
	if !strings.Contains(log.String(), "cannot be written") {
		t.Errorf("the log lacks the cause:\n%s", log)
	}
}
