package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections in memory, which synctest can wait for.
type pipes struct {
	arriving chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.arriving:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// dial returns once the server has accepted the connection.
func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.arriving <- far
	return near
}

// stalls are requests of which the rest never arrives.
var stalls = map[string]string{
	"nothing":               "",
	"half a header":         "GET /api/v1/drives HTTP/1.1\r\nHo",
	"a body":                "POST /api/v1/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n{",
	"a body nothing reads":  "GET /api/v1/drives HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n{",
	"a chunk nothing reads": "GET /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n28\r\n{",
	"a mounted body":        "POST /sim/fault HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n{",
}

// TestStalledRequests: clients that send half a request and stall are disconnected, and
// keep others out for a bounded time only, also when they take every connection.
func TestStalledRequests(t *testing.T) {
	for name, half := range stalls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const conns = 4
				p := &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}
				server := full(newEngine(1))
				server.Mount("/sim/", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }))
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- server.Serve(ctx, Listener{Listener: limit(p, conns)}) }()
				defer func() {
					stop()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}()
				began := time.Now()
				gone := make(chan time.Duration, conns)
				for range conns {
					c := p.dial()
					go func() {
						_, _ = io.WriteString(c, half)
						_, _ = io.Copy(io.Discard, c) // ends when the server closes the connection
						gone <- time.Since(began)
					}()
				}
				if got := readiness(t, p); !strings.HasPrefix(got, "HTTP/1.1 200") {
					t.Errorf("another client was answered %q", got)
				}
				if took := time.Since(began); took > headerTime+bodyTime {
					t.Errorf("another client waited %v", took)
				}
				for range conns {
					if took := <-gone; took > 2*(headerTime+bodyTime) {
						t.Errorf("a stalled client was connected for %v", took)
					}
				}
			})
		})
	}
}

// TestLongPollOutlivesTheBody: the time for a body does not end a long poll that had one.
func TestLongPollOutlivesTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}
		server := full(newEngine(1))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(ctx, Listener{Listener: limit(p, 1)}) }()
		began := time.Now()
		c := p.dial()
		defer c.Close()
		go func() {
			_, _ = io.WriteString(c, "GET /api/v1/drives?after=1&wait=50s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		}()
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 200") || time.Since(began) != 50*time.Second {
			t.Errorf("answered %q, %v after %v", line, err, time.Since(began))
		}
		c.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// readiness is the first line of the answer to a whole request on a connection of its own.
func readiness(t *testing.T, p *pipes) string {
	t.Helper()
	c := p.dial()
	defer c.Close()
	go func() { _, _ = io.WriteString(c, "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") }()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return line
}

// TestListenersAreLimited: a listener accepts no more than maxConns connections, and the
// next one as soon as one of them ends.
func TestListenersAreLimited(t *testing.T) {
	unix, err := ListenUnix(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := ListenTCP(t.Context(), "127.0.0.1:0", Access{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []Listener{unix, tcp} {
		accepted := make(chan net.Conn, maxConns+1)
		ended := make(chan error, 1)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- c
			}
		}()
		var open []net.Conn
		for range maxConns {
			near, err := net.Dial(l.Addr().Network(), l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, near, <-accepted)
		}
		near, err := net.Dial(l.Addr().Network(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-accepted:
			t.Errorf("%s: more than %d connections", l.Addr(), maxConns)
		case <-time.After(50 * time.Millisecond):
			open[1].Close()
			open = append(open, <-accepted)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		for _, c := range append(open, near) {
			c.Close()
		}
	}
}
