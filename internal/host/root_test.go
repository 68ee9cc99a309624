//go:build root

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/fusedisk"
	"github.com/drivebay/drivebay/hack/loopdisk"
	"golang.org/x/sys/unix"
)

func machine(t *testing.T) Machine {
	t.Helper()
	m, err := Real("/")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// await returns the first thing from ch that fits.
func await[T any](t *testing.T, ch <-chan T, fits func(T) bool) T {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case v, ok := <-ch:
			if !ok {
				t.Fatal("the channel is closed")
			}
			if fits(v) {
				return v
			}
		case <-late:
			t.Fatal("nothing came")
		}
	}
}

func image(t *testing.T) (name string, content []byte) {
	t.Helper()
	content = bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	name = filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, content
}

func TestRootDrive(t *testing.T) {
	img, content := image(t)
	dev := loopdisk.Attach(t, img, "--read-only")
	m := machine(t)
	d, err := m.OpenDrive(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := make([]byte, 5000)
	if n, err := d.ReadAt(b, 4097); n != len(b) || err != nil || !bytes.Equal(b, content[4097:4097+5000]) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := d.ReadAt(b, int64(len(content))-100); n != 100 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
	for _, p := range []Page{ATAIdentify, ATASmartStatus, ATADevStats, NVMeSmartLog, NVMeErrorLog, SCSIInquiry, SCSITestUnitReady, "no-such-page"} {
		if b, err := d.Page(t.Context(), p); !errors.Is(err, ErrUnsupported) || len(b) > 0 {
			t.Errorf("a loop device answers %s: % x, %v", p, b, err)
		}
	}
	for _, f := range []Family{FamilyATA, FamilyNVMe, FamilySCSI, "tape"} {
		if err := d.SelfTest(t.Context(), SelfTest{f, SelfTestShort}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("a loop device tests itself as %s: %v", f, err)
		}
	}
	if _, err := m.OpenDrive(t.Context(), "/dev/no-such-drive"); !errors.Is(err, ErrGone) {
		t.Errorf("a drive that is not there: %v", err)
	}
	if _, err := m.OpenDrive(t.Context(), "/dev/null"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a character device: %v", err)
	}
}

func TestRootUevents(t *testing.T) {
	img, _ := image(t)
	dev := filepath.Base(loopdisk.Attach(t, img))
	m := machine(t)
	events, err := m.Uevents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.WriteFile("sys/block/"+dev+"/uevent", []byte("change")); err != nil {
		t.Fatal(err)
	}
	e := await(t, events, func(e Uevent) bool { return e.DevName == dev && e.Action == "change" })
	if e.Subsystem != "block" || e.DevPath != "/devices/virtual/block/"+dev || e.Env["SEQNUM"] == "" || e.Overflow {
		t.Errorf("%+v", e)
	}
}

func TestRootKernelLog(t *testing.T) {
	m := machine(t)
	lines, err := m.KernelLog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("drivebay: a line of process %d at %d", os.Getpid(), time.Now().UnixNano())
	// Without its newline the kernel keeps a line back: it may go on.
	if err := m.WriteFile("dev/kmsg", []byte("<4>"+text+"\n")); err != nil {
		t.Fatal(err)
	}
	l := await(t, lines, func(l LogLine) bool { return l.Text == text })
	if age := time.Since(l.At); l.Priority != 4 || age < -2*time.Second || age > 10*time.Second {
		t.Errorf("priority %d, %v old", l.Priority, age)
	}
}

// A mount point may hold blanks, a source may hold anything.
func TestRootMountNames(t *testing.T) {
	target := filepath.Join(t.TempDir(), "with blank\tand tab")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(`a source\with #1`, target, "tmpfs", unix.MS_NOATIME|unix.MS_NODEV|unix.MS_RDONLY|unix.MS_SYNCHRONOUS, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, 0); err != nil {
			t.Error(err)
		}
	})
	mounts, err := machine(t).Mounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range mounts {
		if m.Target == target {
			found = true
			if m.Source != `a source\with #1` || m.FS != "tmpfs" || !strings.HasPrefix(m.Opts, "ro,nodev,noatime") {
				t.Errorf("%+v", m)
			}
		}
	}
	if !found {
		t.Errorf("%q is not among %d mounts", target, len(mounts))
	}
	if called, err := mountsByCall(); err == nil { // Linux 6.17 and newer
		tree, err := newTree("/")
		if err != nil {
			t.Fatal(err)
		}
		text, err := tree.ReadFile("proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		compareMounts(t, called, parseMountinfo(string(text)))
	}
}

// A program that the kernel holds ends neither by a signal nor by our waiting.
func TestRootRunHeldProgram(t *testing.T) {
	disk, err := fusedisk.New(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	m := machine(t)
	disk.Hang(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = m.Run(ctx, "head", "-c1", disk.Path())
	if !errors.Is(err, errHeld) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
	if took := time.Since(began); took > unkillable+2*time.Second {
		t.Errorf("it held us for %v", took)
	}
}
