package rpc

import (
	"context"
	"io"
	"log/slog"
	"net"
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

// TestStalledClients: a client that stalls before or within a call is disconnected.
func TestStalledClients(t *testing.T) {
	preface, settings := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		sent string
		most time.Duration
	}{
		"nothing":        {"", connectTime},
		"half a preface": {preface[:10], connectTime},
		"no call":        {preface + settings, pingTime + 2*pongTime},
		"half a frame":   {preface + settings + "\x00\x00\x40\x01\x04", pingTime + 2*pongTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := Guard{Log: slog.New(slog.DiscardHandler)}
				p := &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- Serve(ctx, g.NewServer(), p) }()
				near, far := net.Pipe()
				p.arriving <- far
				began := time.Now()
				go func() { _, _ = io.WriteString(near, c.sent) }()
				_, _ = io.Copy(io.Discard, near) // ends when the server closes the connection
				if took := time.Since(began); took > c.most {
					t.Errorf("connected for %v", took)
				}
				near.Close()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
