//go:build root

package counters_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/loopdisk"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/counters"
	"golang.org/x/sys/unix"
)

const mib = 1 << 20

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRootCounters: the counters of a device are read by one open file, they follow the device, and
// those of a partition that went are not read for the next one with its name.
func TestRootCounters(t *testing.T) {
	w, err := host.Real("/")
	must(t, err)
	_, dev := loopdisk.New(t, 64*mib, "--partscan")
	d, err := w.OpenDisk(t.Context(), dev, false)
	must(t, err)
	defer d.Close()
	var files counters.Files
	opens := 0
	read := func(name string) (string, bool) {
		if !strings.HasPrefix(name, "sys/") {
			name = "sys/class/block/" + name
		}
		if !counters.IsKept(name) {
			t.Fatalf("%s is not kept open", name)
		}
		b, ok := files.Read(name, time.Now(), func(name string) (int, error) {
			opens++
			return unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		})
		return string(b), ok
	}
	disk := filepath.Base(dev)
	was, _ := read(disk + "/stat")
	must(t, readDirect(dev, 32*mib))
	if is, ok := read(disk + "/stat"); !ok || opens != 1 || strings.Fields(is)[0] == strings.Fields(was)[0] {
		t.Errorf("after a read of the device, by %d open files: %q, and was %q", opens, is, was)
	}
	must(t, d.AddPartition(1, mib, 4*mib))
	before, ok := read(disk + "p1/size")
	if again, _ := read(disk + "p1/size"); !ok || again != before || opens != 2 {
		t.Errorf("by %d open files: %q, then %q", opens, before, again)
	}
	num, err := w.ReadFile("sys/class/block/" + disk + "p1/dev")
	must(t, err)
	byNumber := "sys/dev/block/" + strings.TrimSpace(string(num))
	start, ok := read(byNumber + "/start")
	if event, has := read(byNumber + "/uevent"); !ok || start != "2048\n" || !has || !strings.Contains(event, "DEVNAME="+disk+"p1\n") || opens != 4 {
		t.Errorf("by %d open files: start %q, uevent %q", opens, start, event)
	}
	must(t, d.RemovePartition(1))
	if b, ok := read(disk + "p1/size"); ok {
		t.Errorf("the partition is gone: %q", b)
	}
	if b, ok := read(byNumber + "/start"); ok {
		t.Errorf("the partition is gone, by its number too: %q", b)
	}
	must(t, d.AddPartition(1, 8*mib, 8*mib))
	if after, ok := read(disk + "p1/size"); !ok || after == before || opens != 5 {
		t.Errorf("another partition has the name: %q, and was %q; %d open files", after, before, opens)
	}
	must(t, d.RemovePartition(1))
}

// TestRootCountersOfFilesystem: the count of errors of an ext4 is read by one open file, which neither keeps it mounted nor
// shows that count for the next filesystem of the device.
func TestRootCountersOfFilesystem(t *testing.T) {
	_, dev := loopdisk.New(t, 64*mib)
	at, dir := t.TempDir(), "sys/fs/ext4/"+filepath.Base(dev)
	var files counters.Files
	opens := 0
	read := func() string {
		if !counters.IsKept(dir + "/errors_count") {
			t.Fatal("it is not kept open")
		}
		b, _ := files.Read(dir+"/errors_count", time.Now(), func(name string) (int, error) {
			opens++
			return unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		})
		return string(b)
	}
	for range 2 {
		opens = 0
		must(t, exec.Command("mkfs.ext4", "-q", "-F", dev).Run())
		must(t, unix.Mount(dev, at, "ext4", 0, ""))
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		if got := read(); got != "0\n" || opens != 1 {
			t.Errorf("mounted: %q by %d open files", got, opens)
		}
		must(t, os.WriteFile("/"+dir+"/trigger_fs_error", []byte("test"), 0))
		got := read() // a worker of the kernel counts it (fs/ext4/super.c, flush_stashed_error_work)
		for end := time.Now().Add(10 * time.Second); got == "0\n" && time.Now().Before(end); got = read() {
			time.Sleep(10 * time.Millisecond)
		}
		if got != "1\n" || opens != 1 {
			t.Errorf("after an error: %q by %d open files", got, opens)
		}
		must(t, unix.Unmount(at, 0))
		if _, err := os.Stat("/" + dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the kernel still has the filesystem: %v", err)
		}
		if got := read(); got != "" {
			t.Errorf("unmounted: %q", got)
		}
	}
}

// readDirect reads from a device past the page cache.
func readDirect(dev string, at int64) error {
	fd, err := unix.Open(dev, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(buf) }()
	_, err = unix.Pread(fd, buf, at)
	return err
}
