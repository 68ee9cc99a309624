package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// call runs one command line in this process, as a user with an environment of
// his own and nobody at the screen.
func call(t *testing.T, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return callContext(ctx, env, args...)
}

func callContext(ctx context.Context, env map[string]string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	a := testApp(env, &out, &errs)
	code = a.run(ctx, args)
	return out.String(), errs.String(), code
}

func testApp(env map[string]string, out, errs writer) *app {
	env = maps.Clone(env) // a daemon reads it while its test goes on
	var environ []string
	for k, v := range env {
		environ = append(environ, k+"="+v)
	}
	return &app{
		in: strings.NewReader(""), out: out, err: errs, environ: environ, now: time.Now, simulate: simulated,
		getenv: func(k string) string { return env[k] }, columns: func() int { return 0 },
	}
}

type writer interface {
	Write([]byte) (int, error)
	String() string
}

// safeBuffer is a buffer that one goroutine writes and another reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// shortDir is a folder whose name leaves room for a socket's (unix(7): 107 bytes).
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// engine is what a daemon would know, and what it was told to do.
type engine struct {
	snap atomic.Pointer[drivebay.Snapshot]
	next chan drivebay.Snapshot // what Wait brings, one after another
	done []string
	fail error
}

func newEngine(first drivebay.Snapshot, later ...drivebay.Snapshot) *engine {
	e := &engine{next: make(chan drivebay.Snapshot, len(later))}
	e.snap.Store(&first)
	for _, s := range later {
		e.next <- s
	}
	return e
}

func (e *engine) Snapshot() *drivebay.Snapshot { return e.snap.Load() }
func (e *engine) Wait(ctx context.Context, _ uint64) (*drivebay.Snapshot, error) {
	select {
	case s := <-e.next:
		e.snap.Store(&s)
		return &s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
func (e *engine) Events(after uint64, limit int) []drivebay.Event {
	list := []drivebay.Event{
		{Seq: 1, Kind: drivebay.EventAppeared, Drive: "naa-aaaa01", Cause: "seen"},
		{Seq: 2, Kind: drivebay.EventAppeared, Drive: "naa-aaaa02", Cause: "seen"},
		{Seq: 3, Kind: drivebay.EventVolumeCreated, Drive: "naa-aaaa01", Volume: dataVolume, Cause: "made"},
		{Seq: 4, Kind: drivebay.EventHealth, Drive: "naa-aaaa02", From: "GOOD", To: "BAD", Cause: "it died"},
	}
	var out []drivebay.Event
	for _, ev := range list {
		if ev.Seq > after && len(out) < limit {
			out = append(out, ev)
		}
	}
	return out
}
func (e *engine) WaitEvents(ctx context.Context, _ uint64) ([]drivebay.Event, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (e *engine) did(format string, args ...any) error {
	e.done = append(e.done, fmt.Sprintf(format, args...))
	return e.fail
}
func (e *engine) Refresh(context.Context) error { return e.did("refresh") }
func (e *engine) Pages(_ context.Context, d string) ([]drivebay.RawPage, error) {
	return []drivebay.RawPage{{Page: "ata-identify", Data: []byte("hello")}}, e.did("pages %s", d)
}
func (e *engine) SelfTest(_ context.Context, d, k string) error { return e.did("selftest %s %s", d, k) }
func (e *engine) Locate(_ context.Context, b string, on bool) error {
	return e.did("locate %s %v", b, on)
}
func (e *engine) Acknowledge(_ context.Context, d, c string) error { return e.did("ack %s %q", d, c) }
func (e *engine) Cordon(_ context.Context, d string, on bool) error {
	return e.did("cordon %s %v", d, on)
}
func (e *engine) Operate(_ context.Context, d string, do drivebay.LeaveVerb, why string) error {
	return e.did("%s %s %q", do, d, why)
}
func (e *engine) Claim(_ context.Context, d string, on bool) error {
	return e.did("claim %s %v", d, on)
}

func twoDrives() drivebay.Snapshot {
	drive := func(n string, h drivebay.Health) drivebay.Drive {
		return drivebay.Drive{ID: "naa-aaaa0" + n, Name: "sd" + n, Type: drivebay.TypeHDD, Status: drivebay.StatusOnline, Health: h,
			Identity: drivebay.Identity{Serial: "SN" + n, Model: "Disk"}, Slot: drivebay.Slot{Bay: "Slot " + n},
			Evidence: &drivebay.Evidence{Source: "drive", ATA: &drivebay.ATA{Attributes: []drivebay.Attribute{{ID: 5, Name: "Reallocated_Sector_Ct", Text: "7"}}}}}
	}
	bay := func(encl, name string) drivebay.Bay {
		return drivebay.Bay{Slot: drivebay.Slot{Enclosure: encl, Bay: name}}
	}
	bad := drive("2", drivebay.HealthBad)
	bad.Findings = []drivebay.Finding{{Code: "ATAFailed", Severity: drivebay.HealthBad, Text: "it says so itself", Advice: "Replace it."}}
	return drivebay.Snapshot{Seq: 1, Complete: true, Machine: drivebay.Machine{Name: "box", Kind: "real"}, Problems: []string{"no kernel log"},
		Bays:   []drivebay.Bay{bay("encl", "Slot 07"), bay("encl", "8"), bay("encl", "Slot 09"), bay("other", "Disk 9")},
		Drives: []drivebay.Drive{drive("1", drivebay.HealthGood), bad}}
}

// daemonFor serves an engine and returns the environment of its users.
func daemonFor(t *testing.T, e *engine) map[string]string {
	t.Helper()
	return daemonWith(t, e, api.Options{})
}

func daemonWith(t *testing.T, e *engine, opt api.Options) map[string]string {
	t.Helper()
	path := filepath.Join(shortDir(t), "s")
	l, err := api.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.New(e, opt).Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-ended })
	return map[string]string{"DRIVEBAY_API": "unix://" + path}
}

func TestReading(t *testing.T) {
	e := newEngine(twoDrives())
	env := daemonFor(t, e)
	for _, tc := range []struct {
		args      string
		want, not []string
	}{
		{"drives", []string{"Slot 1", "sd2", "BAD", "it says so itself", "2 drives: 1 GOOD, 1 BAD"}, []string{"\x1b["}},
		{"drives --health bad", []string{"sd2", "1 drive: 1 BAD"}, []string{"sd1"}},
		{"drives --type ssd", []string{"no drives"}, nil},
		{"drives --color always", []string{"\x1b[1;31mBAD\x1b[0m"}, nil},
		{"drives -o wide", []string{"ENCLOSURE", "naa-aaaa01"}, nil},
		{"drives -o yaml", []string{"machine:\n", "  - id: naa-aaaa01\n", "    serial: SN1\n"}, nil},
		{"drive show SN2", []string{"naa-aaaa02", "BAD", "Replace it."}, nil},
		{"drive show /dev/sd1 -o yaml", []string{"id: naa-aaaa01"}, nil},
		{"explain sd2", []string{"ATAFailed", "it says so itself", "what to do: Replace it."}, nil},
		{"explain sd1", []string{"No health rule applies to the drive.", "attributes"}, nil},
		{"smart sd1", []string{"Reallocated_Sector_Ct"}, nil},
		{"smart sd1 -o json", []string{`"name": "Reallocated_Sector_Ct"`}, nil},
		{"smart sd1 --raw", []string{"ata-identify: 5 bytes", "|hello|"}, nil},
		{"events", []string{"DriveAppeared", "GOOD -> BAD", "it died"}, nil},
		{"events --drive sd1", []string{"naa-aaaa01"}, []string{"naa-aaaa02"}},
		{"events -n 1 -o json", []string{`"seq":4`}, []string{`"seq":3`}},
		{"version", []string{"drivebay ", "go1."}, nil},
		{"completion bash", []string{"drivebay"}, nil},
	} {
		t.Run(tc.args, func(t *testing.T) {
			errs := prints(t, env, tc.args, tc.want, tc.not)
			if strings.HasPrefix(tc.args, "drives") && !strings.Contains(errs, "note: no kernel log") {
				t.Errorf("what could not be seen is not said: %q", errs)
			}
		})
	}
}

// prints wants a call to end well, and some words and others not in what it prints;
// it returns what it says beside that.
func prints(t *testing.T, env map[string]string, args string, want, not []string) (errs string) {
	t.Helper()
	out, errs, code := call(t, env, strings.Fields(args)...)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, errs)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%q is not in\n%s", w, out)
		}
	}
	for _, w := range not {
		if strings.Contains(out, w) {
			t.Errorf("%q is in\n%s", w, out)
		}
	}
	return errs
}

func TestDrivesJSONIsTheAPIs(t *testing.T) {
	e := newEngine(twoDrives())
	out, errs, code := call(t, daemonFor(t, e), "drives", "-o", "json")
	var got drivebay.Snapshot
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatalf("%d %s %v", code, errs, err)
	}
	if len(got.Drives) != 2 || got.Drives[0].Serial != "SN1" || got.Machine.Name != "box" {
		t.Errorf("got %+v", got)
	}
}

func TestActing(t *testing.T) {
	e := newEngine(twoDrives())
	env := daemonFor(t, e)
	for _, tc := range []struct{ args, did, says string }{
		{"drive cordon SN1", "cordon naa-aaaa01 true", "drive naa-aaaa01 (sd1) cordoned"},
		{"release sd1 --why clicks", `release naa-aaaa01 "clicks"`, "drive naa-aaaa01 (sd1) is being released; `drivebay drive show naa-aaaa01` shows what it waits for"},
		{"approve sd1 --yes", `approve naa-aaaa01 ""`, "can be pulled"},
		{"cancel sd1", `cancel naa-aaaa01 ""`, "stays"},
		{"drive retry sd1", `retry naa-aaaa01 ""`, "retries the failed step"},
		{"accept sd1", `accept naa-aaaa01 ""`, "in use again"},
		{"drive uncordon sd1", "cordon naa-aaaa01 false", "uncordoned"},
		{"drive acknowledge sd2", `ack naa-aaaa02 ""`, "acknowledged"},
		{"drive acknowledge sd2 ATAFailed", `ack naa-aaaa02 "ATAFailed"`, "acknowledged"},
		{"locate 7 on", "locate encl/Slot 07 true", "the light of bay encl/Slot 07 is on"},
		{"locate encl/8 on", "locate encl/8 true", "is on"},
		{"locate sd1 off", "locate naa-aaaa01 false", "is off"},
		{"refresh", "refresh", "being read"},
		{"selftest sd1 long", "selftest naa-aaaa01 long", "long self-test started"},
		{"selftest sd1 abort", "selftest naa-aaaa01 abort", "aborted"},
	} {
		e.done = nil
		out, errs, code := call(t, env, strings.Fields(tc.args)...)
		if code != 0 || len(e.done) != 1 || e.done[0] != tc.did || !strings.Contains(out, tc.says) {
			t.Errorf("%s: exit status %d, did %q, said %q %q", tc.args, code, e.done, out, errs)
		}
	}
	e.fail = fmt.Errorf("drive naa-aaaa01: %w", drivebay.ErrNoSupport)
	if _, errs, code := call(t, env, "selftest", "sd1", "short"); code != exitFailure || !strings.Contains(errs, "not supported") {
		t.Errorf("a refusal: exit status %d, %q", code, errs)
	}
}

func TestSelfTestIsAwaited(t *testing.T) {
	for _, tc := range []struct {
		name   string
		result drivebay.SelfTestResult
		code   int
	}{{"passed", drivebay.SelfTestPassed, exitOK}, {"failed", drivebay.SelfTestFailed, exitFailure}} {
		t.Run(tc.name, func(t *testing.T) {
			running, ended := twoDrives(), twoDrives()
			left := 40
			running.Seq, ended.Seq = 2, 3
			running.Drives[0].Evidence.SelfTestProgress = &left
			ended.Drives[0].Evidence.SelfTests = []drivebay.SelfTest{{Kind: "short", Result: tc.result, Text: "the end", Hours: 9}}
			e := newEngine(twoDrives(), running, ended)
			out, errs, code := call(t, daemonFor(t, e), "selftest", "sd1", "short", "--wait")
			if code != tc.code || !strings.Contains(out+errs, "short self-test "+tc.result.String()+": the end") {
				t.Errorf("exit status %d, %q %q", code, out, errs)
			}
		})
	}
}

// A SAS drive reports that a test is in progress, and no percentage of it.
func TestSelfTestWithoutPercentageIsAwaited(t *testing.T) {
	for _, tc := range []struct {
		name string
		log  []drivebay.SelfTest
		says string
		code int
	}{
		{"passed", []drivebay.SelfTest{{Kind: "long", Result: drivebay.SelfTestPassed, Text: "the end", Hours: 9}}, "long self-test passed: the end", exitOK},
		{"nothing logged", nil, "logged no result", exitFailure},
	} {
		t.Run(tc.name, func(t *testing.T) {
			running, ended := twoDrives(), twoDrives()
			running.Seq, ended.Seq = 2, 3
			running.Drives[0].Evidence.SelfTests = []drivebay.SelfTest{{Kind: "long", Result: drivebay.SelfTestRunning, Text: "in progress"}}
			ended.Drives[0].Evidence.SelfTests = tc.log
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var out, errs safeBuffer
			code := testApp(daemonFor(t, newEngine(twoDrives(), running, ended)), &out, &errs).run(ctx, []string{"selftest", "sd1", "long", "--wait"})
			if text := out.String() + errs.String(); code != tc.code || !strings.Contains(text, tc.says) || !strings.Contains(text, "self-test of drive") {
				t.Errorf("exit status %d, %q", code, text)
			}
		})
	}
}

func TestWatchDrawsEveryChange(t *testing.T) {
	later := twoDrives()
	later.Seq, later.Drives = 2, later.Drives[:1]
	e := newEngine(twoDrives(), later)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs safeBuffer
	a := testApp(daemonFor(t, e), &out, &errs)
	ended := make(chan int, 1)
	go func() { ended <- a.run(ctx, []string{"drives", "--watch"}) }()
	eventually(t, patience, func() bool { return strings.Contains(out.String(), "1 drive: 1 GOOD") }, out.String)
	cancel()
	if code := <-ended; code != exitOK || !strings.Contains(out.String(), "2 drives:") {
		t.Errorf("exit status %d: %s%s", code, out.String(), errs.String())
	}
}

// patience is how long a test waits for a fact on a machine that is busy with other work. Budgets of time are
// tested in virtual time (drivemgr, TestPullAndReturn) and by hack/bench.
const patience = time.Minute

// eventually waits until something is so.
func eventually(t *testing.T, limit time.Duration, so func() bool, state func() string) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", limit, state())
		}
	}
}

func TestWrongCalls(t *testing.T) {
	env := daemonFor(t, newEngine(twoDrives()))
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"drvies", exitUsage, `drivebay has no command "drvies": did you mean "drives"?`},
		{"drive sho sda", exitUsage, `did you mean "show"?`},
		{"drives extra", exitUsage, `unknown command "extra"`},
		{"drives --colour always", exitUsage, "unknown flag: --colour"},
		{"drives --color blue", exitUsage, "want auto, always or never"},
		{"drives -o xml", exitUsage, "want table, wide, json, yaml"},
		{"drives --health fine", exitUsage, "is no health"},
		{"drives --local --root /x", exitUsage, "cannot be used together"},
		{"drive show", exitUsage, "accepts 1 arg"},
		{"locate 7", exitUsage, "accepts 2 arg"},
		{"locate 7 up", exitUsage, "want on or off"},
		{"selftest sd1 medium", exitUsage, "want short, long, abort"},
		{"events -n -1", exitUsage, "want 0 or more"},
		{"events --drive sd1 --volume data-1", exitUsage, "cannot be used together"},
		{"assess", exitUsage, "requires at least 1 arg"},
		{"config check", exitUsage, "accepts 1 arg"},
		{"drive show sd", exitFailure, "did you mean one of these? naa-aaaa01 (sd1), naa-aaaa02 (sd2)"},
		{"locate 9 on", exitFailure, `bay "9": ambiguous: encl/Slot 09, other/Disk 9`},
		{"locate 77 on", exitFailure, `bay "77": not found: known bays: encl/Slot 07, encl/8`},
		{"drive show zzz", exitFailure, "`drivebay drives` lists the drives"},
		{"explain Slot", exitFailure, "did you mean one of these?"},
		{"drives --root /nowhere", exitFailure, "it contains no sys/"},
		{"drives --api unix:///nowhere/s", exitFailure, "start it with `drivebay serve`"},
		{"drives --api nonsense", exitFailure, "want unix:///path"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			out, errs, code := call(t, env, strings.Fields(tc.args)...)
			if code != tc.code || !strings.Contains(errs, tc.want) {
				t.Errorf("exit status %d, want %d: %q, want %q in it", code, tc.code, errs, tc.want)
			}
			if out != "" {
				t.Errorf("something is on standard output: %q", out)
			}
		})
	}
}

func TestConfigCommands(t *testing.T) {
	out, errs, code := call(t, map[string]string{"DRIVEBAY_LOG_LEVEL": "debug", "HOME": "/h"}, "config", "print")
	if code != 0 || !strings.Contains(out, "level: debug") {
		t.Errorf("print: %d %q %q", code, out, errs)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("log:\n  lvel: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := call(t, nil, "config", "check", file); code != exitFailure || !strings.Contains(errs, file+`:2: unknown key "log.lvel": did you mean "log.level"?`) {
		t.Errorf("check: %d %q", code, errs)
	}
	if out, errs, code := call(t, nil, "config", "check", "../../examples/drivebay.yaml"); code != 0 || !strings.Contains(out, "is valid") {
		t.Errorf("check the example: %d %q %q", code, out, errs)
	}
}

func TestPagesAreAsTheProgramMakesThem(t *testing.T) {
	for page, what := range map[string]string{"../../docs/cli.md": "cli", "../../examples/drivebay.yaml": "config", "../../docs/health-rules.md": "rules", "../../docs/volume-conditions.md": "conditions", "../../docs/repairs.md": "repairs", "../../docs/drive-usage.md": "usage", "../../docs/events.md": "events"} {
		want, _, code := call(t, nil, "docs", what)
		got, err := os.ReadFile(page)
		if err != nil || code != 0 {
			t.Fatalf("%s: %d %v", page, code, err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the program makes: run make generate", page)
		}
	}
}
