// Package loopdisk makes loop devices over files, for tests that run as root.
package loopdisk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// New returns a new sparse file and a device over it, until the test ends.
func New(t testing.TB, size int64, args ...string) (file, dev string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "drive")
	return file, Make(t, file, size, args...)
}

// Make does what New does, over a sparse file of that name.
func Make(t testing.TB, file string, size int64, args ...string) (dev string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
	return Attach(t, file, args...)
}

// Attach returns a device over a file, until the test ends. With --partscan its
// partitions are removed with it; otherwise the next device of its number would have
// them.
func Attach(t testing.TB, file string, args ...string) (dev string) {
	t.Helper()
	out, err := exec.Command("losetup", append([]string{"--find", "--show", "--partscan", file}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup %s: %v: %s", file, err, out)
	}
	dev = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", dev).CombinedOutput(); err != nil {
			t.Errorf("losetup --detach %s: %v: %s", dev, err, out)
		}
		// The kernel detaches the device at its last close (loop(4), LO_FLAGS_AUTOCLEAR).
		// Until then the next test would list it, and could not read it.
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat("/sys/block/" + filepath.Base(dev) + "/loop/backing_file"); err != nil {
				return
			}
		}
	})
	return dev
}
