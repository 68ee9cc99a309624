package demo

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/daemon"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// buffer is output that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func simulate(path string) (daemon.Simulated, error) { return hostsim.LoadFile(path) }

// The story reaches its end by itself, and nothing of it is left.
func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	var out buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- (&demo{out: &out, simulate: simulate, pace: 20 * time.Millisecond}).run(ctx, 0) }()
	for end := time.Now().Add(time.Minute); !strings.Contains(out.String(), "is the successor"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the demonstration does not end:\n%s", &out)
		}
		if len(ended) > 0 {
			t.Fatalf("the demonstration ended: %v\n%s", <-ended, &out)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"http://127.0.0.1:", "/ui/open.html#", "the drive fails", "nothing depends on the drive any more", "serial ZL2ANEW1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not said:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "cannot continue") {
		t.Error(out.String())
	}
}

// shortDir returns a folder for a socket, whose name has room for 107 bytes, and checks that it is left empty.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		os.RemoveAll(dir)
	})
	return dir
}
