package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// serveOn runs a server on a unix socket and says where.
func serveOn(t *testing.T, each func(*net.UnixConn)) string {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				each(conn.(*net.UnixConn))
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, c *Client, socket string) net.Conn {
	t.Helper()
	conn, err := c.Dial(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestDialHalfClose: a server that answers only when all was said gets to know it,
// and its answer still comes.
func TestDialHalfClose(t *testing.T) {
	socket := serveOn(t, func(conn *net.UnixConn) {
		b, _ := io.ReadAll(conn)
		conn.Write(append([]byte("you said "), b...))
	})
	conn := dial(t, newGuest(t), socket)
	io.WriteString(conn, "all ")
	io.WriteString(conn, "of it")
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); err != nil || string(b) != "you said all of it" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestDialTalk(t *testing.T) {
	socket := serveOn(t, func(conn *net.UnixConn) { io.Copy(conn, conn) })
	conn := dial(t, newGuest(t), socket)
	got := make([]byte, 4)
	for _, word := range []string{"ping", "pong", "ding"} { // each answer comes before the next question
		io.WriteString(conn, word)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != word {
			t.Fatalf("%q, %v", got, err)
		}
	}
	sent := make([]byte, 3_000_000) // both ways at once
	rand.NewChaCha8([32]byte{2}).Read(sent)
	go conn.Write(sent)
	back := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, back); err != nil || !bytes.Equal(back, sent) {
		t.Errorf("came back otherwise: %v", err)
	}
}

// TestDialServerEnds: what was said before the server hung up arrives, then the end.
func TestDialServerEnds(t *testing.T) {
	said := bytes.Repeat([]byte("last words "), 100_000)
	socket := serveOn(t, func(conn *net.UnixConn) { conn.Write(said) })
	if b, err := io.ReadAll(dial(t, newGuest(t), socket)); err != nil || !bytes.Equal(b, said) {
		t.Errorf("%d bytes of %d, %v", len(b), len(said), err)
	}
}

func TestDialHangUp(t *testing.T) {
	ended := make(chan struct{})
	socket := serveOn(t, func(conn *net.UnixConn) {
		io.WriteString(conn, "hello")
		io.Copy(io.Discard, conn)
		close(ended)
	})
	conn := dial(t, newGuest(t), socket)
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	unblocked := make(chan struct{})
	go func() {
		conn.Read(make([]byte, 1))
		close(unblocked)
	}()
	conn.Close()
	await(t, "the end on the server's side", ended)
	await(t, "the end of the reader", unblocked)
}

// TestDialHangUpOnTalker: nobody listens any more, and the server is told.
func TestDialHangUpOnTalker(t *testing.T) {
	ended := make(chan struct{})
	socket := serveOn(t, func(conn *net.UnixConn) {
		for {
			if _, err := conn.Write(make([]byte, 1<<16)); err != nil {
				close(ended)
				return
			}
		}
	})
	conn := dial(t, newGuest(t), socket)
	if _, err := io.ReadFull(conn, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	await(t, "the end on the server's side", ended)
}

// TestDialUnread: a connection that nobody reads from holds up nobody else.
func TestDialUnread(t *testing.T) {
	socket := serveOn(t, func(conn *net.UnixConn) {
		for {
			if _, err := conn.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	c := newGuest(t)
	dial(t, c, socket)
	works(t, c)
}

func TestDialNothing(t *testing.T) {
	c := newGuest(t)
	stale := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := os.Stat(stale); err != nil {
		t.Fatal(err)
	}
	// The daemon that a test waits for is either not there or not there yet.
	for _, socket := range []string{"/no/such/socket", stale} {
		if _, err := c.Dial(t.Context(), "unix", socket); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", socket, err)
		}
	}
	if _, err := c.Dial(t.Context(), "carrier pigeon", "roof"); err == nil {
		t.Error("an unknown network")
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	ended := make(chan struct{})
	socket := serveOn(t, func(conn *net.UnixConn) {
		io.Copy(io.Discard, conn)
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := newGuest(t).Dial(ctx, "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	await(t, "the end on the server's side", ended)
}

// TestJoin: two connections become one, each side's end included.
func TestJoin(t *testing.T) {
	c := newGuest(t)
	there := serveOn(t, func(conn *net.UnixConn) {
		b, _ := io.ReadAll(conn)
		conn.Write(append([]byte("heard "), b...))
	})
	joined := make(chan struct{})
	here := serveOn(t, func(conn *net.UnixConn) {
		remote, err := c.Dial(t.Context(), "unix", there)
		if err != nil {
			t.Error(err)
			return
		}
		Join(conn, remote)
		close(joined)
		remote.Close()
	})
	conn, err := net.Dial("unix", here)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "me")
	conn.(*net.UnixConn).CloseWrite()
	if b, err := io.ReadAll(conn); err != nil || string(b) != "heard me" {
		t.Errorf("%q, %v", b, err)
	}
	await(t, "the end of both", joined)
}
