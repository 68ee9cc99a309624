package api

import (
	"net"
	"sync"
)

// maxConns is how many connections one listener has open at a time. Further ones wait in
// the kernel's queue until one of them ends.
const maxConns = 256

// limited is a listener with a bounded number of open connections, so that clients that
// open many take neither the memory nor the file descriptors of the daemon.
type limited struct {
	net.Listener
	open   chan struct{} // one element for each open connection
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, conns int) net.Listener {
	return &limited{Listener: l, open: make(chan struct{}, conns), closed: make(chan struct{})}
}

// Accept waits until fewer connections than the limit are open, then for the next one.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &counted{Conn: c, end: sync.OnceFunc(func() { <-l.open })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counted is a connection that makes room for another one when it is closed.
type counted struct {
	net.Conn
	end func()
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.end()
	return err
}
