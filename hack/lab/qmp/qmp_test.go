package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what should come at once.
const patience = 30 * time.Second

// request is a command as QEMU reads it (docs/interop/qmp-spec.rst).
type request struct {
	Execute   string
	Arguments map[string]any
}

// peer is QEMU's end of one connection: the test says what it answers.
type peer struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

// next reads the next command; ok is false when the client hung up.
func (p *peer) next() (r request, ok bool) {
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return r, false
	}
	if err := json.Unmarshal(line, &r); err != nil {
		p.t.Errorf("the client sent %q: %v", line, err)
	}
	return r, true
}

// quiet tells whether the client sends nothing for that long.
func (p *peer) quiet(d time.Duration) bool {
	p.conn.SetReadDeadline(time.Now().Add(d))
	defer p.conn.SetReadDeadline(time.Time{})
	_, err := p.lines.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func (p *peer) say(format string, args ...any) { fmt.Fprintf(p.conn, format+"\r\n", args...) }

func (p *peer) event(name, data string) {
	p.say(`{"timestamp": {"seconds": 1, "microseconds": 2}, "event": %q, "data": %s}`, name, data)
}

const greeting = `{"QMP": {"version": {"qemu": {"micro": 0, "minor": 2, "major": 10}, "package": ""}, "capabilities": ["oob"]}}`

// listen gives a socket's name to connect to; QEMU's end of each connection is
// what serve does, once the client has introduced itself.
func listen(t *testing.T, serve func(*peer)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qmp") // t.TempDir is longer than a socket's name may be
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "qmp"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		p := &peer{t: t, conn: conn, lines: bufio.NewReader(conn)}
		p.say(greeting)
		if r, ok := p.next(); !ok || r.Execute != "qmp_capabilities" {
			t.Errorf("the first command is %q", r.Execute)
		}
		p.say(`{"return": {}}`)
		serve(p)
	}()
	t.Cleanup(func() {
		l.Close()
		await(t, "the end of QEMU", done)
		os.RemoveAll(dir)
	})
	return l.Addr().String()
}

// connect is a client of such a QEMU.
func connect(t *testing.T, serve func(*peer)) *Client {
	t.Helper()
	socket := listen(t, serve)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := Connect(ctx, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
}

// echo answers every command with its own name and arguments, and sends events
// before, between and after.
func echo(p *peer) {
	for r, ok := p.next(); ok; r, ok = p.next() {
		p.event("RTC_CHANGE", `{"offset": 78}`)
		b, _ := json.Marshal(r)
		p.say(`{"return": %s, "id": null}`, b)
		p.event("RTC_CHANGE", `{"offset": 79}`)
	}
}

func TestRun(t *testing.T) {
	c := connect(t, echo)
	for _, arguments := range []any{nil, map[string]any{"id": "nv0"}} {
		b, err := c.Run(t.Context(), "device_del", arguments)
		if err != nil {
			t.Fatal(err)
		}
		var r request
		if err := json.Unmarshal(b, &r); err != nil || r.Execute != "device_del" {
			t.Errorf("answer %s, %v", b, err)
		}
		if (arguments == nil) != (r.Arguments == nil) || arguments != nil && r.Arguments["id"] != "nv0" {
			t.Errorf("arguments %v came as %v", arguments, r.Arguments)
		}
	}
}

func TestRefused(t *testing.T) {
	c := connect(t, func(p *peer) {
		p.next()
		p.say(`{"error": {"class": "DeviceNotFound", "desc": "Device 'nv9' not found"}}`)
		echo(p)
	})
	_, err := c.Run(t.Context(), "device_del", map[string]any{"id": "nv9"})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Class != "DeviceNotFound" || e.Command != "device_del" || !strings.Contains(err.Error(), "device_del: Device 'nv9' not found") {
		t.Errorf("error %#v", err)
	}
	if errors.Is(err, ErrGone) {
		t.Error("a refusal is no hang-up")
	}
	if _, err := c.Run(t.Context(), "query-status", nil); err != nil {
		t.Errorf("the next command: %v", err)
	}
}

func TestRunTogether(t *testing.T) {
	c := connect(t, echo)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				name := fmt.Sprintf("command-%d-%d", i, j)
				b, err := c.Run(t.Context(), name, nil)
				var r request
				if err == nil {
					err = json.Unmarshal(b, &r)
				}
				if err != nil || r.Execute != name {
					t.Errorf("%s got the answer of %q, %v", name, r.Execute, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestOneAtATime: which answer is whose is known only by their order.
func TestOneAtATime(t *testing.T) {
	c := connect(t, func(p *peer) {
		for range 4 {
			p.next()
			if !p.quiet(20 * time.Millisecond) {
				t.Error("a command came before the last one was answered")
			}
			p.say(`{"return": {}}`)
		}
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := c.Run(t.Context(), "query-status", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestStrayAnswer: an answer that nobody asked for is not the next one's.
func TestStrayAnswer(t *testing.T) {
	begin := make(chan struct{})
	c := connect(t, func(p *peer) {
		<-begin
		p.say(`{"return": "stray"}`)
		p.say(`{"return": "another"}`)
		p.event("RESUME", "{}")
		echo(p)
	})
	w := c.Expect("RESUME", nil)
	close(begin)
	if err := w.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Run(t.Context(), "next", nil); err != nil || !strings.Contains(string(b), "next") {
		t.Errorf("answer %s, %v", b, err)
	}
}

// TestHangUp: QEMU goes away in the middle of a command, and everybody knows.
func TestHangUp(t *testing.T) {
	c := connect(t, func(p *peer) { p.next() })
	w := c.Expect("DEVICE_DELETED", nil)
	if _, err := c.Run(t.Context(), "device_del", nil); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "device_del") {
		t.Errorf("the command: %v", err)
	}
	await(t, "Gone", c.Gone())
	if err := w.Done(t.Context()); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "DEVICE_DELETED") {
		t.Errorf("the event: %v", err)
	}
	if _, err := c.Run(t.Context(), "query-status", nil); !errors.Is(err, ErrGone) {
		t.Errorf("the next command: %v", err)
	}
}

// TestLastWords: what QEMU says just before it goes was said. Whether the answer
// or the end is seen first is a matter of luck, hence many times.
func TestLastWords(t *testing.T) {
	for range 100 {
		c := connect(t, func(p *peer) {
			p.next()
			fmt.Fprint(p.conn, "{\"return\": {}}\n{\"event\": \"SHUTDOWN\", \"data\": {}}\n")
		})
		w := c.Expect("SHUTDOWN", nil)
		if _, err := c.Run(t.Context(), "quit", nil); err != nil {
			t.Fatalf("quit: %v", err)
		}
		await(t, "Gone", c.Gone())
		if err := w.Done(t.Context()); err != nil {
			t.Fatalf("shutdown: %v", err)
		}
	}
}

// TestLateAnswer: the answer to a command that was given up is nobody else's.
func TestLateAnswer(t *testing.T) {
	late := make(chan struct{})
	c := connect(t, func(p *peer) {
		p.next()
		<-late
		p.say(`{"return": "late"}`)
		echo(p)
	})
	why := errors.New("the test has waited enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if _, err := c.Run(ctx, "slow", nil); !errors.Is(err, why) || !strings.Contains(err.Error(), "slow") {
		t.Errorf("given up with %v", err)
	}
	close(late)
	for range 20 {
		if b, err := c.Run(t.Context(), "next", nil); err == nil && !strings.Contains(string(b), "next") {
			t.Fatalf("the next command got %s", b)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestGivenUpBefore: a command whose time is over takes no other's answer either,
// however fast QEMU is.
func TestGivenUpBefore(t *testing.T) {
	for range 100 {
		c := connect(t, echo)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.Run(ctx, "first", nil)
		if b, err := c.Run(t.Context(), "second", nil); err == nil && !strings.Contains(string(b), "second") {
			t.Fatalf("the second command got %s", b)
		}
		c.Close()
	}
}

func TestExpect(t *testing.T) {
	c := connect(t, func(p *peer) {
		for r, ok := p.next(); ok; r, ok = p.next() {
			p.event("DEVICE_DELETED", `{"path": "/machine/peripheral/other/virtio-backend"}`)
			p.event("DEVICE_DELETED", `{"device": "other"}`)
			p.event("DEVICE_UNPLUG_GUEST_ERROR", `{"device": "nv0"}`)
			if r.Execute == "device_del" {
				p.event("DEVICE_DELETED", `{"device": "nv0"}`)
				p.event("DEVICE_DELETED", `{"device": "nv0"}`) // twice does no harm
			}
			p.say(`{"return": {}}`)
		}
	})
	nv0 := func(data json.RawMessage) bool {
		var e struct{ Device string }
		return json.Unmarshal(data, &e) == nil && e.Device == "nv0"
	}
	w, cancelled := c.Expect("DEVICE_DELETED", nv0), c.Expect("DEVICE_DELETED", nv0)
	cancelled.Cancel()
	run := func(command string) {
		if _, err := c.Run(t.Context(), command, nil); err != nil {
			t.Fatal(err)
		}
	}
	run("query-status")
	select {
	case <-w.came:
		t.Fatal("another device's event, or another event, was taken")
	default:
	}
	run("device_del")
	if err := w.Done(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case <-cancelled.came:
		t.Error("a wait that was cancelled goes on")
	default:
	}
	// What came before is not what somebody waits for from now on.
	again := c.Expect("DEVICE_DELETED", nv0)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := again.Done(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "DEVICE_DELETED") {
		t.Errorf("waited with %v", err)
	}
	if len(c.waits) != 0 {
		t.Errorf("%d waits are left", len(c.waits))
	}
	anything := c.Expect("DEVICE_DELETED", nil)
	run("query-status")
	if err := anything.Done(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNoise: what is no JSON, no answer and no event is passed over, long lines too.
func TestNoise(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	c := connect(t, func(p *peer) {
		p.next()
		p.say("")
		p.say("qemu-system-x86_64: warning: something")
		p.say(`{"unknown": 1}`)
		p.say(`{"return": %q}`, long)
		p.next()
	})
	b, err := c.Run(t.Context(), "query", nil)
	if err != nil || len(b) != len(long)+2 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestClose(t *testing.T) {
	ended := make(chan struct{})
	c := connect(t, func(p *peer) {
		p.next()
		close(ended)
	})
	c.Close()
	await(t, "the end on QEMU's side", ended)
	await(t, "Gone", c.Gone())
}

func TestConnectRefused(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, dir+"/none"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestConnectWaits for QEMU to make its socket.
func TestConnectWaits(t *testing.T) {
	socket := listen(t, echo)
	later := socket + "-later"
	time.AfterFunc(50*time.Millisecond, func() { os.Rename(socket, later) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := Connect(ctx, later)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestConnectSilent: something listens but does not speak.
func TestConnectSilent(t *testing.T) {
	dir, err := os.MkdirTemp("", "qmp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", dir+"/qmp")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
