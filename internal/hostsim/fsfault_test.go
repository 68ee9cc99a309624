package hostsim_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestMountFaults: what fails below a filesystem shows where it shows on Linux.
func TestMountFaults(t *testing.T) {
	m, _ := load(t, small)
	n := mounted(t, m, "ext4", "errors=remount-ro")
	inject(t, m, "2", "eio")
	if _, err := m.Usage(t.Context(), n.At); err != nil {
		t.Errorf("statfs notices: %v", err)
	}
	if _, err := m.ReadFolder(t.Context(), n.At); err == nil {
		t.Error("a folder is read from a drive that fails")
	}
	if got := read(t, m, "sys/fs/ext4/sda1/errors_count"); got != "1" {
		t.Errorf("%s errors are counted", got)
	}
	if x := mountAt(t, m, kubelet+"/stage/vol"); !slices.Contains(strings.Split(x.Opts, ","), "ro") {
		t.Errorf("it is mounted %s", x.Opts)
	}
	inject(t, m, "2", "heal")
	if _, err := m.ReadFolder(t.Context(), n.At); err != nil || read(t, m, "sys/fs/ext4/sda1/errors_count") != "0" {
		t.Errorf("after it was healed: %v", err)
	}
	inject(t, m, "2", "hang")
	done := make(chan error)
	go func() { done <- m.Unmount(t.Context(), n.At) }()
	select {
	case err := <-done:
		t.Fatalf("unmounted while the drive hangs: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	if mountAt(t, m, kubelet+"/stage/vol") == nil {
		t.Error("the mount went before its data was written")
	}
	inject(t, m, "2", "heal")
	must(t, <-done, m.Mount(t.Context(), n))
	inject(t, m, "2", "vanish")
	if _, err := m.ReadFolder(t.Context(), n.At); err == nil || errors.Is(err, host.ErrGone) {
		t.Errorf("a folder of a drive that was pulled: %v", err)
	}
	inject(t, m, "2", "return") // the old name is not free while it is mounted
	if x := mountAt(t, m, kubelet+"/stage/vol"); x == nil {
		t.Fatal("the mount went with the drive")
	}
	if _, err := m.Resolve("sys/block/sda"); err == nil {
		t.Error("the drive came back under a name that is in use")
	}
	must(t, m.Unmount(t.Context(), n.At))
	inject(t, m, "2", "vanish")
	inject(t, m, "2", "return")
	if _, err := m.Resolve("sys/block/sda"); err != nil {
		t.Error("the name is not free after the unmount")
	}
}

// TestFilesystemFaults: a person breaks a filesystem by device, place or drive.
func TestFilesystemFaults(t *testing.T) {
	m, _ := load(t, small)
	n := mounted(t, m, "ext4")
	fault := func(target, name string) {
		t.Helper()
		must(t, m.Inject(hostsim.Fault{Drive: target, Fault: name}))
	}
	fault("sda1", "fs-errors")
	fault(kubelet+"/stage/vol", "fs-read-only")
	if x := mountAt(t, m, kubelet+"/stage/vol"); read(t, m, "sys/fs/ext4/sda1/errors_count") != "1" || !strings.Contains(x.Opts, ",ro") {
		t.Errorf("the mount is %+v", x)
	}
	fault("HDD0", "fs-corrupt")
	if code := exitCode(t, m, "e2fsck", "-n", "-f", "/dev/sda1"); code != 4 {
		t.Errorf("e2fsck of a damaged filesystem ends with %d", code)
	}
	must(t, m.Inject(hostsim.Fault{Bay: "sda1", Fault: "fs-unmount"}))
	if mountAt(t, m, kubelet+"/stage/vol") != nil {
		t.Error("it is still mounted")
	}
	if code := exitCode(t, m, "e2fsck", "-y", "-f", "/dev/sda1"); code != 1 {
		t.Errorf("e2fsck -y ends with %d", code)
	}
	if code := exitCode(t, m, "e2fsck", "-n", "-f", "/dev/sda1"); code != 0 {
		t.Errorf("e2fsck after the repair ends with %d", code)
	}
	must(t, m.Mount(t.Context(), n))
	fault("/dev/sda1", "fs-corrupt")
	fault("/dev/sda1", "heal")
	if code := exitCode(t, m, "e2fsck", "-n", "-f", "/dev/sda1"); code != 0 {
		t.Errorf("e2fsck after heal ends with %d", code)
	}
	for _, target := range []string{"sdb", "/dev/sdb", "/nowhere", "7"} {
		if err := m.Inject(hostsim.Fault{Drive: target, Fault: "fs-corrupt"}); err == nil {
			t.Errorf("the filesystem of %s is damaged, it has none", target)
		}
	}
}

// TestPrograms: flags, refusals and exit statuses as of the real ones (e2fsprogs
// 1.47, xfsprogs 6.1, btrfs-progs 6.2, tried on a loop device).
func TestPrograms(t *testing.T) {
	m, _ := load(t, small)
	mounted(t, m, "ext4")
	held := openDisk(t, m, "/dev/sdb", true)
	for _, c := range []struct {
		argv string
		code int
		said string
	}{
		{"mkfs.ext4 -q -F /dev/sda1", 1, "in use by the system"},
		{"mkfs.ext4 -q -F /dev/sda", 1, "in use by the system"},
		{"mkfs.ext4 -q -F " + held.Path(), 1, "in use by the system"},
		{"mkfs.xfs -q -f /dev/sdb", 1, "resource busy"},
		{"mkfs.ext4 -q -Z /dev/sdc", 1, "invalid option -- 'Z'"},
		{"mkfs.ext4 -q -U 1 /dev/sdc", 1, "could not parse UUID"},
		{"mkfs.ext4 -q -E cheese /dev/sdc", 1, "Bad option"},
		{"mkfs.ext4 -q /dev/sdq", 1, "does not exist"},
		{"mkfs.xfs -q -L longer-than-twelve /dev/sdc", 1, "Invalid value"},
		{"mkfs.ext4 -q -L data -U " + someID + " /dev/sdc", 0, ""},
		{"mkfs.xfs -q /dev/sdc", 1, "existing filesystem (ext4)"},
		{"mkfs.btrfs -q /dev/sdc", 1, "use the -f option"},
		{"xfs_repair -n /dev/sdc", 1, "bad magic"},
		{"mkfs.xfs -q -f -K -m uuid=" + someID + " /dev/sdc", 0, ""},
		{"xfs_repair -n /dev/sdc", 0, ""},
		{"e2fsck -n -f /dev/sdc", 8, "Bad magic"},
		{"mkfs.btrfs --quiet --force --uuid " + someID + " --label data /dev/sdc", 0, ""},
		{"btrfs check --readonly /dev/sdc", 0, ""},
		{"btrfs check --readonly /dev/sda1", 1, "currently mounted"},
		{"btrfs balance /dev/sdc", 1, "unknown command"},
		{"fsck.ext4 -n", 16, "Usage"},
		{"e2fsck -y -f /dev/sda1", 8, "is mounted"},
	} {
		_, err := m.Run(t.Context(), strings.Fields(c.argv)...)
		exit, ok := errors.AsType[*host.ExitError](err)
		if ok != (c.code != 0) || ok && (exit.Code != c.code || !strings.Contains(exit.Stderr, c.said)) {
			t.Errorf("%s: %v, want status %d and %q", c.argv, err, c.code, c.said)
		}
	}
	inject(t, m, "4", "eio")
	if code := exitCode(t, m, "mkfs.ext4", "-q", "/dev/sdc"); code != 1 {
		t.Errorf("mkfs on a drive that fails ends with %d", code)
	}
	inject(t, m, "4", "heal")
	for kind, damaged := range map[string]string{"xfs": "xfs_repair -n", "btrfs": "btrfs check --readonly"} {
		if code := exitCode(t, m, "mkfs."+kind, "-f", "/dev/sdc"); code != 0 {
			t.Fatal(kind, code)
		}
		must(t, m.Inject(hostsim.Fault{Bay: "4", Fault: "fs-corrupt"}))
		if code := exitCode(t, m, append(strings.Fields(damaged), "/dev/sdc")...); code != 1 {
			t.Errorf("%s of a damaged filesystem ends with %d", damaged, code)
		}
	}
	lacking, _ := load(t, small+"without: [mkfs.xfs]")
	if _, err := lacking.Run(t.Context(), "mkfs.xfs", "/dev/sda"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not installed: %v", err)
	}
}
