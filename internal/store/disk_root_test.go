//go:build root

package store_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/internal/store/storetest"
)

func run(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// mounted mounts a filesystem in a folder until the test ends.
func mounted(t *testing.T, dir string, options ...string) {
	t.Helper()
	run(t, append([]string{"mount"}, append(options, dir)...)...)
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// ext4Disk is an ext4 filesystem on a loop device whose file is below a folder.
func ext4Disk(t *testing.T, below string, size int64) (device string) {
	t.Helper()
	file := filepath.Join(below, "disk")
	f, err := os.Create(file)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	device = run(t, "losetup", "--find", "--show", file)
	t.Cleanup(func() { _ = exec.Command("losetup", "--detach", device).Run() })
	run(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device)
	return device
}

// fill leaves no room in a folder.
func fill(t *testing.T, dir string) (undo func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) >= 512; block = block[:len(block)/2] {
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func bigRecord() map[string]drivebay.Record {
	r := storetest.Record("big")
	r.Drive.Model = strings.Repeat("x", 8<<20)
	return map[string]drivebay.Record{"big": r}
}

// TestRootFullDisk: a full disk is said as long as it is full, while the daemon runs and when
// it starts, and what was there is kept.
func TestRootFullDisk(t *testing.T) {
	dir := t.TempDir()
	mounted(t, dir, "-t", "tmpfs", "-o", "size=4m", "tmpfs")
	path := filepath.Join(dir, "drivebay.db")
	b := open(t, path)
	put(t, b, "a")
	undo := fill(t, dir)
	if err := b.PutRecords(bigRecord()); err == nil {
		t.Fatal("8 MiB went where there is no room")
	}
	failing(t, b, "no space left")
	shut(t, b)
	b = open(t, path) // on a full disk
	if got, err := b.Records(); err != nil || len(got) != 1 {
		t.Errorf("on a full disk: %d records, %v", len(got), err)
	}
	undo()
	b.Check()
	failing(t, b, "")
	put(t, b, "c")
	shut(t, b)
}

// TestRootReadOnlyDisk: a store on a read-only disk is opened for reading, says so, and takes
// writes once the disk does.
func TestRootReadOnlyDisk(t *testing.T) {
	for _, had := range []bool{true, false} {
		t.Run(fmt.Sprint("with a store: ", had), func(t *testing.T) {
			dir := t.TempDir()
			mounted(t, dir, ext4Disk(t, t.TempDir(), 32<<20))
			path := filepath.Join(dir, "state", "drivebay.db")
			if had {
				b := open(t, path)
				put(t, b, "a")
				shut(t, b)
			}
			run(t, "mount", "-o", "remount,ro", dir)
			b := open(t, path)
			defer shut(t, b)
			failing(t, b, "read-only file system")
			b.Check()
			failing(t, b, "read-only file system")
			got, err := b.Records()
			if want := map[bool]int{true: 1}[had]; err != nil || len(got) != want {
				t.Errorf("read: %d records, %v", len(got), err)
			}
			for what, read := range map[string]func() error{
				"events": func() error { _, err := b.Events(0, 0); return err }, "last event": func() error { _, err := b.LastEvent(); return err },
				"volumes": func() error { _, err := b.Volumes(); return err }, "forgotten": func() error { _, err := b.Forgotten(); return err }} {
				if err := read(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := b.PutVolume(storetest.Volume("v")); err == nil || !strings.Contains(err.Error(), "read-only") {
				t.Errorf("a write: %v", err)
			}
			run(t, "mount", "-o", "remount,rw", dir)
			b.Check()
			failing(t, b, "")
			if err := b.PutVolume(storetest.Volume("v")); err != nil {
				t.Error(err)
			}
			if got, err := b.Records(); err != nil || had && len(got) != 1 {
				t.Errorf("afterwards: %d records, %v", len(got), err)
			}
		})
	}
}

// TestRootDiskTurnsReadOnly: ext4 gives up in the middle (mount option abort, ext4(5)); the
// filesystem is then mounted anew.
func TestRootDiskTurnsReadOnly(t *testing.T) {
	dir := t.TempDir()
	device := ext4Disk(t, t.TempDir(), 32<<20)
	mounted(t, dir, "-o", "errors=remount-ro", device)
	path := filepath.Join(dir, "drivebay.db")
	b := open(t, path)
	defer shut(t, b)
	put(t, b, "a")
	_ = exec.Command("mount", "-o", "remount,abort", dir).Run() // the remount itself fails
	if err := b.PutVolume(storetest.Volume("v")); err == nil {
		t.Fatal("a write on a filesystem that gave up")
	} else {
		t.Log(err)
	}
	failing(t, b, "read-only file system")
	if err := b.PutVolume(storetest.Volume("v")); err == nil {
		t.Error("a second write on a filesystem that gave up")
	}
	failing(t, b, "read-only file system")
	b.Check()
	failing(t, b, "read-only file system")
	if got, err := b.Records(); err != nil || len(got) != 1 {
		t.Errorf("meanwhile: %d records, %v", len(got), err)
	}
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	b.Check()
	if b.Failing() == nil {
		t.Error("the folder below an unmounted filesystem was taken into use")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a store was made below an unmounted filesystem")
	}
	defer store.MissingTime(store.MissingTime(0))
	b.Check()
	if _, err := os.Stat(path); err == nil {
		t.Error("a store was made below an unmounted filesystem")
	}
}

// TestRootDiskFails: the block device fails its writes, because it has no room below it; the
// store says so until it writes again.
func TestRootDiskFails(t *testing.T) {
	below, dir := t.TempDir(), t.TempDir()
	mounted(t, below, "-t", "tmpfs", "-o", "size=24m", "tmpfs")
	mounted(t, dir, "-o", "errors=continue", ext4Disk(t, below, 64<<20))
	path := filepath.Join(dir, "drivebay.db")
	b := open(t, path)
	defer shut(t, b)
	put(t, b, "a")
	undo := fill(t, below)
	err := b.PutRecords(bigRecord())
	t.Log(err)
	if err == nil {
		t.Fatal("8 MiB went where there is no room")
	}
	failing(t, b, "no space left")
	undo()
	b.Check()
	failing(t, b, "")
	if got, err := b.Records(); err != nil || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
}
