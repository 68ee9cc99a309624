package agent

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what should come at once.
const patience = 30 * time.Second

func listen(t testing.TB) net.Listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // t.TempDir is longer than a socket's name may be
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "guest"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); os.RemoveAll(dir) })
	return l
}

// newGuest is this machine as a guest. It serves one connection after the other,
// as a serial port does.
func newGuest(t testing.TB) *Client {
	t.Helper()
	l, done := listen(t), make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			Serve(conn)
		}
	}()
	c := Connect(l.Addr().String())
	t.Cleanup(func() {
		c.Close()
		l.Close()
		await(t, "the guest's end", done)
	})
	return c
}

func sh(script string) Command { return Command{Argv: []string{"sh", "-c", script}} }

func start(t testing.TB, c *Client, cmd Command, io Streams) *Process {
	t.Helper()
	p, err := c.Start(t.Context(), cmd, io)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func await(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
}

// alive tells whether a process runs. One that nobody has buried is dead
// (proc_pid_stat(5): the state comes after the name in brackets).
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	state := string(b[bytes.LastIndexByte(b, ')')+2:])
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func awaitDeath(t testing.TB, pids ...int) {
	t.Helper()
	end := time.Now().Add(patience)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(end) {
				t.Fatalf("process %d lives on", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// transcript takes what a command writes and lets the test wait for it.
type transcript struct {
	mu   sync.Mutex
	text []byte
	more chan struct{}
}

func newTranscript() *transcript { return &transcript{more: make(chan struct{}, 1)} }

func (w *transcript) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.text = append(w.text, b...)
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

func (w *transcript) await(t testing.TB, want string) string {
	t.Helper()
	for late := time.After(patience); ; {
		if s := w.String(); strings.Contains(s, want) {
			return s
		}
		select {
		case <-w.more:
		case <-late:
			t.Fatalf("the command wrote %q, not %q", w.String(), want)
		}
	}
}

// pids waits for n lines with a process number each.
func (w *transcript) pids(t testing.TB, n int) []int {
	t.Helper()
	var out []int
	for late := time.After(patience); ; {
		s := w.String()
		if strings.Count(s, "\n") == n {
			for _, f := range strings.Fields(s) {
				pid, err := strconv.Atoi(f)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, pid)
			}
			return out
		}
		select {
		case <-w.more:
		case <-late:
			t.Fatalf("the command wrote %q, not %d process numbers", s, n)
		}
	}
}
