package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Dial connects to something that listens in the guest.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, out := io.Pipe()
	resp, err := c.send(ctx, http.MethodPost, "/dial", url.Values{"network": {network}, "address": {address}}, in)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	closeAtEnd(ctx, resp.Body)
	return &stream{Reader: resp.Body, WriteCloser: out, body: resp.Body, cancel: cancel}, nil
}

// closeAtEnd ends a stream with its context. The transport itself does not look at
// the context while it waits to send (golang.org/x/net/http2, awaitFlowControl).
func closeAtEnd(ctx context.Context, body io.Closer) {
	context.AfterFunc(ctx, func() { body.Close() })
}

// stream is a connection into the guest. It has no deadlines: closing it ends
// what waits.
type stream struct {
	io.Reader
	io.WriteCloser
	body   io.Closer
	cancel context.CancelFunc
}

func (s *stream) CloseWrite() error { return s.WriteCloser.Close() }
func (s *stream) Close() error {
	s.cancel()
	return errors.Join(s.WriteCloser.Close(), s.body.Close())
}
func (s *stream) LocalAddr() net.Addr              { return portAddr{} }
func (s *stream) RemoteAddr() net.Addr             { return portAddr{} }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// Join copies both ways between two connections until both have said all.
func Join(a, b net.Conn) {
	done := make(chan struct{})
	one := func(to, from net.Conn) {
		io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	}
	go func() { one(a, b); close(done) }()
	one(b, a)
	<-done
}
