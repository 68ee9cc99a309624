package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// holderOf makes this test binary a process that holds the lock of a file.
const holderOf = "DRIVEBAY_TEST_LOCK"

func init() {
	name := os.Getenv(holderOf)
	if name == "" {
		return
	}
	f, err := lockFile(name, "pid of the first", 0)
	if err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("locked\n")
	time.Sleep(time.Minute)
	f.Close()
	os.Exit(0)
}

// TestLockFile: the lock is refused while another process has it, which the error
// describes, and ends with that process, also when it is killed.
func TestLockFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), holderOf+"="+name)
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	_, err = lockFile(name, "second", 0)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "(pid of the first)") {
		t.Errorf("while another process has the lock: %v", err)
	}
	// The lock ends a moment after the call began to wait.
	time.AfterFunc(50*time.Millisecond, func() { _ = first.Process.Kill() })
	f, err := lockFile(name, "2", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_ = first.Wait()
	if text, err := os.ReadFile(name); err != nil || string(text) != "2\n" {
		t.Errorf("the lock describes its holder as %q, %v", text, err)
	}
	if _, err := lockFile(name, "3", 0); !errors.Is(err, ErrBusy) {
		t.Errorf("a second time in one process: %v", err)
	}
}

// TestLockOfARecording: recordings are looked at side by side, and nothing is written to
// them.
func TestLockOfARecording(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"sys", "dev"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := LockMachine(root, "x"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, lockName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the recording has a lock: %v", err)
	}
}
