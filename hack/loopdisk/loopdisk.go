// Package loopdisk makes block devices of files, for tests that run as root.
package loopdisk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// New is a device over a sparse file of its own, until the test ends.
func New(t testing.TB, size int64, args ...string) (file, dev string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "drive")
	return file, Make(t, file, size, args...)
}

// Make is New over a sparse file of that name.
func Make(t testing.TB, file string, size int64, args ...string) (dev string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
	return Attach(t, file, args...)
}

// Attach is a device over a file, until the test ends. With --partscan its partitions
// go when it does; otherwise the next user of its number would have them.
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
	})
	return dev
}
