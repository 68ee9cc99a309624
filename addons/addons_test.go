package addons

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drivebay/drivebay"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// engine is what a daemon knows of its drives.
type engine struct {
	snap    atomic.Pointer[drivebay.Snapshot]
	unready atomic.Pointer[[]string]
}

func (e *engine) Snapshot() *drivebay.Snapshot { return e.snap.Load() }
func (e *engine) Unready() []string            { return *e.unready.Load() }

func (e *engine) set(s drivebay.Snapshot, unready ...string) {
	e.snap.Store(&s)
	e.unready.Store(&unready)
}

// rig is a server on a socket and a connection to it.
func rig(t *testing.T, volumes Volumes) (*engine, *grpc.ClientConn, *lockedBuffer) {
	t.Helper()
	e, log := &engine{}, &lockedBuffer{}
	e.set(drivebay.Snapshot{Seq: 1})
	s := New(e, Options{Name: "drivebay.io", Version: "v9", Volumes: volumes, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	return e, dial(t, serve(t, s)), log
}

// serve answers on a socket until the test ends.
func serve(t *testing.T, s interface {
	Serve(context.Context, net.Listener) error
}) (endpoint string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "unix://" + socket
}

func dial(t *testing.T, endpoint string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
