//go:build root

package fusedisk

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRootFuseDisk(t *testing.T) {
	d, err := New(t.TempDir(), 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	f, err := os.OpenFile(d.Path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := bytes.Repeat([]byte("drivebay"), 2000)
	if _, err := f.WriteAt(want, 5000); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 5000); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read back: %v", err)
	}
	d.Fail(true)
	if _, err := f.ReadAt(got, 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("a failing disk answers %v", err)
	}
	d.Fail(false)
	d.Hang(true)
	came := make(chan error, 1)
	go func() { _, err := unix.Pread(int(f.Fd()), make([]byte, 512), 0); came <- err }()
	select {
	case err := <-came:
		t.Errorf("a hung disk answers %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	d.Hang(false)
	if err := <-came; err != nil {
		t.Errorf("after it hung: %v", err)
	}
	if r, w := d.Asked(); r < 3 || w == 0 {
		t.Errorf("%d reads and %d writes counted", r, w)
	}
}
