package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/drivebay/drivebay"
)

// Listener is an address on which the server answers.
type Listener struct {
	net.Listener
	ReadOnly bool    // the server refuses privileged routes on this address
	Access   *Access // what the server requires of requests on this address; nil: nothing
	shared   bool    // the server refuses privileged routes to users other than root and the daemon's own
}

const (
	socketMode    = 0o600
	socketDirMode = 0o755 // each socket has its own permissions
	probeTime     = time.Second
)

// ListenUnix opens the socket of the daemon's owner. It replaces a socket that a dead daemon left
// behind. It fails if another daemon answers there, or if the file is not a socket.
func ListenUnix(path string) (Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), socketDirMode); err != nil {
		return Listener{}, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := clearStale(path); err != nil {
		return Listener{}, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return Listener{}, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return Listener{}, errors.Join(fmt.Errorf("socket %s: %w", path, err), l.Close())
	}
	return Listener{Listener: limit(l, maxConns)}, nil
}

func clearStale(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%w: there is another kind of file", drivebay.ErrInvalid)
	}
	conn, err := net.DialTimeout("unix", path, probeTime)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("%w: another daemon answers there", drivebay.ErrBusy)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return fmt.Errorf("%w: another daemon holds it and does not answer", drivebay.ErrBusy)
	}
	return os.Remove(path)
}

// ListenTCP opens an address for read-only access.
func ListenTCP(ctx context.Context, addr string, access Access) (Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return Listener{}, fmt.Errorf("listen on %s: %w", addr, err)
	}
	l = limit(l, maxConns)
	if access.TLS != nil {
		l = tls.NewListener(l, access.TLS) // the server bounds the time of the handshake
	}
	return Listener{Listener: l, ReadOnly: true, Access: &access}, nil
}
