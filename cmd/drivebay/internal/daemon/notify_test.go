package daemon

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// handClock is a clock whose time passes when the test sends on it.
type handClock chan time.Time

func (c handClock) Now() time.Time                       { return time.Time{} }
func (c handClock) After(time.Duration) <-chan time.Time { return c }

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read := func() string {
		if err := l.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	n := newNotifier(func(string) string { return path })
	if err := n.send("READY=1"); err != nil || read() != "READY=1" {
		t.Errorf("READY did not arrive: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	clock, ended, alive := make(handClock), make(chan struct{}), make(chan bool, 2)
	go func() {
		defer close(ended)
		n.watchdog(ctx, clock, "2000000", func() bool { return <-alive })
	}()
	alive <- false // stuck: not a word
	alive <- true
	clock <- time.Time{}
	clock <- time.Time{}
	if got := read(); got != "WATCHDOG=1" {
		t.Errorf("got %q", got)
	}
	cancel()
	<-ended
	if err := newNotifier(func(string) string { return "" }).send("READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
	if err := newNotifier(func(string) string { return path + ".gone" }).send("READY=1"); err == nil {
		t.Error("a socket that is gone is no error")
	}
}

// TestEndIfStuck: a daemon that does not look any more ends; one that was paused for a moment goes on.
func TestEndIfStuck(t *testing.T) {
	clock, ended, alive := make(handClock), make(chan error, 1), make(chan bool, 10)
	go func() { ended <- endIfStuck(t.Context(), clock, func() bool { return <-alive }) }()
	for _, is := range []bool{true, false, false, true, false, false, false} {
		select {
		case err := <-ended:
			t.Fatalf("it ends too early: %v", err)
		case clock <- time.Time{}:
			alive <- is
		}
	}
	if err := <-ended; err == nil {
		t.Error("it ends without an error: nothing starts it again")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := endIfStuck(ctx, make(handClock), func() bool { return false }); err != nil {
		t.Errorf("stopped: %v", err)
	}
}
