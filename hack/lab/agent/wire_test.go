package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGuestHangsUp in the middle of a command: an error comes, and in the guest
// the command ends.
func TestGuestHangsUp(t *testing.T) {
	l := listen(t)
	accepted, served := make(chan net.Conn, 1), make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err == nil {
			accepted <- conn
			Serve(conn)
		}
	}()
	c := Connect(l.Addr().String())
	defer c.Close()
	p, pids := family(t, c, t.Context())
	(<-accepted).Close()
	await(t, "the end", p.Done())
	err := p.Wait()
	if _, ended := errors.AsType[*ExitError](err); err == nil || ended {
		t.Errorf("a command that nobody heard the end of has ended: %v", err)
	}
	awaitDeath(t, pids...)
	await(t, "the end of Serve", served)
}

// TestHostHangsUp: the guest is free for the next one, and nothing of the first
// runs on.
func TestHostHangsUp(t *testing.T) {
	c := newGuest(t) // waits at the end until it is served no more
	p, pids := family(t, c, t.Context())
	c.Close()
	await(t, "the end", p.Done())
	if p.Wait() == nil {
		t.Error("a command that nobody heard the end of ended well")
	}
	awaitDeath(t, pids...)
	if out, err := c.Output(t.Context(), "echo", "again"); err != nil || out != "again\n" {
		t.Errorf("a new connection: %q, %v", out, err)
	}
}

// TestOneConnection: a second one would find nobody there, however many commands
// come at once.
func TestOneConnection(t *testing.T) {
	for range 5 {
		l := listen(t)
		var connections atomic.Int32
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				connections.Add(1)
				go Serve(conn)
			}
		}()
		c := Connect(l.Addr().String())
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := c.Output(t.Context(), "true"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := connections.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		c.Close()
		l.Close()
	}
}

func open(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestNothingStaysOpen of what has ended: the agent serves for as long as its machine.
func TestNothingStaysOpen(t *testing.T) {
	// What is forgotten is closed when its memory is collected, some time.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	c := newGuest(t)
	socket := serveOn(t, func(*net.UnixConn) {})
	file := t.TempDir() + "/file"
	each := func() {
		for _, cmd := range []Command{sh("echo out; echo err >&2"), onWindow("echo out", Window{}), {Argv: []string{"no-such-program"}}, {Argv: []string{"no-such-program"}, Terminal: &Window{}}} {
			if p, err := c.Start(t.Context(), cmd, Streams{In: strings.NewReader("in")}); err == nil {
				p.Wait()
			}
		}
		c.Put(t.Context(), file, 0o600, strings.NewReader("x"))
		c.Get(t.Context(), file)
		if conn, err := c.Dial(t.Context(), "unix", socket); err == nil {
			conn.Close()
		}
	}
	each() // the connection itself
	before := open(t)
	for range 20 {
		each()
	}
	after := open(t)
	for end := time.Now().Add(5 * time.Second); after > before && time.Now().Before(end); after = open(t) {
		time.Sleep(10 * time.Millisecond)
	}
	if after > before {
		t.Errorf("%d open files before, %d after", before, after)
	}
}

// answering is a guest that answers every command with these bytes.
func answering(t *testing.T, answer []byte) *Client {
	t.Helper()
	l := listen(t)
	server := &http.Server{Protocols: unencrypted(), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(answer) })}
	go server.Serve(l)
	c := Connect(l.Addr().String())
	t.Cleanup(func() { c.Close(); server.Close() })
	return c
}

func record(kind byte, length int, content string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(length)), content...)
}

func TestRecords(t *testing.T) {
	pid, end := record('p', 2, "42"), record('x', 10, `{"code":0}`)
	most := strings.Repeat("m", maxRecord)
	for name, test := range map[string]struct {
		answer []byte
		want   string // of the error; "": none
	}{
		"longest":          {bytes.Join([][]byte{pid, record('o', len(most), most), end}, nil), ""},
		"too long":         {bytes.Join([][]byte{pid, record('o', len(most)+1, most+"m"), end}, nil), "record of 1048577 bytes"},
		"far too long":     {bytes.Join([][]byte{pid, record('o', 0xFFFFFFFF, "")}, nil), "record of 4294967295 bytes"},
		"exit too long":    {bytes.Join([][]byte{pid, record('x', maxRecord+1, "")}, nil), "record of"},
		"no exit":          {pid, "hung up"},
		"half a head":      {append(pid, 'o', 0), "hung up"},
		"half a record":    {append(pid, record('o', 10, "half")...), "hung up"},
		"exit is no JSON":  {append(pid, record('x', 1, "{")...), "JSON"},
		"nothing":          {nil, "hung up"},
		"it never started": {record('x', 27, `{"code":127,"error":"none"}`), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p, err := answering(t, test.answer).Start(t.Context(), sh(""), Streams{Out: &out})
			if err == nil {
				if p.PID != 42 {
					t.Errorf("process %d", p.PID)
				}
				err = p.Wait()
			}
			if test.want == "" && (err != nil || out.String() != most) {
				t.Errorf("%d bytes, %v", out.Len(), err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	if _, err := Connect("/no/such/socket").Output(t.Context(), "true"); err == nil {
		t.Error("a command ran nowhere")
	}
}
