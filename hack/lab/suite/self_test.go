//go:build lab

package suite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/image"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabStartsFast: a fresh machine with five drives starts in a third of the time that
// the same machine takes to boot, because its state was saved. The fastest of five starts
// counts. Hosts differ, so the limit is not in seconds; docs/lab.md has measured times.
func TestLabStartsFast(t *testing.T) {
	spec := machine.Spec{Drives: []machine.Drive{nvme("NV0"), nvme("NV1"), nvme("NV2"), scsi("SD0", 0x5000c500b0000000), scsi("SD1", 0x5000c500b0000001)}}
	var took []time.Duration
	var boot time.Duration
	for n := range 6 {
		began := time.Now()
		m, err := lab.Up(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		if n == 0 { // it may have booted and saved a machine
			took = nil
			m.PowerCut()
			began = time.Now()
			if err := m.Boot(t.Context()); err != nil {
				t.Fatal(err)
			}
			boot = time.Since(began)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(took)
	t.Logf("a machine with five drives starts in %v, median %v; it boots in %v", took, took[len(took)/2], boot)
	if took[0] > boot/3 {
		t.Errorf("the fastest start took %v, want at most a third of %v", took[0], boot)
	}
}

// TestLabRunsTestBinaries: the tests of another package run in the guest as they
// are, on its kernel and its loop devices.
func TestLabRunsTestBinaries(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	m.Sh("modprobe fuse") // a file that hangs
	lab.Run(t, m, "./internal/host", "-tags=root", "-run", "Root")
}

// TestLabAgent: what the unit tests of the agent cannot: the wire is a serial
// port with a small buffer, and the other end is slow.
func TestLabAgent(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	m.Must(m.Guest.Put(t.Context(), "/tmp/big", 0o600, bytes.NewReader(big)))
	if sum, want := m.Sh("sha256sum </tmp/big"), fmt.Sprintf("%x  -", sha256.Sum256(big)); sum != want {
		t.Errorf("16 MiB arrive as %s, sent was %s", sum, want)
	}
	if back, err := m.Guest.Get(t.Context(), "/tmp/big"); err != nil || !bytes.Equal(back, big) {
		t.Errorf("16 MiB come back as %d bytes, %v", len(back), err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if out, err := m.Guest.Shell(t.Context(), fmt.Sprintf("sleep 0.2; echo %d", i)); err != nil || out != fmt.Sprintln(i) {
				t.Errorf("command %d: %q, %v", i, out, err)
			}
		})
	}
	wg.Wait()
	if now := m.Now(); time.Since(now).Abs() > 2*time.Second {
		t.Errorf("the guest's clock is %v off", time.Since(now))
	}
}

// TestLabTwice: two programs that start the lab at the same moment with an empty
// cache for machines do not disturb each other. A saved machine that does not come up is saved anew.
func TestLabTwice(t *testing.T) {
	t.Parallel()
	cache, err := image.Cache()
	if err != nil {
		t.Fatal(err)
	}
	bases, err := filepath.Glob(filepath.Join(cache, "base-*"))
	if err != nil || len(bases) == 0 {
		t.Fatalf("no image in %s: %v", cache, err)
	}
	own := t.TempDir()
	for _, b := range bases { // the image itself is not made again
		if err := os.Symlink(b, filepath.Join(own, filepath.Base(b))); err != nil {
			t.Fatal(err)
		}
	}
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	program := func(name string) {
		cmd := exec.CommandContext(t.Context(), "go", "run", "./hack/lab", "shell")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "DRIVEBAY_LAB_CACHE="+own)
		cmd.Stdin = strings.NewReader("drivebay drives; echo writes >/dev/disk/by-id/wwn-0x5000c500b0000000; echo status $?\n")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "9 drives") || !strings.Contains(string(out), "status 0") {
			t.Errorf("program %s: %v\n%s", name, err, out)
		}
	}
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		wg.Go(func() { program(name) })
	}
	wg.Wait()
	states, _ := filepath.Glob(filepath.Join(own, "state-*"))
	if len(states) != 1 {
		t.Fatalf("%d machines were saved, want one for both", len(states))
	}
	if err := os.Truncate(states[0], 1<<20); err != nil {
		t.Fatal(err)
	}
	program("with a saved machine of no use")
}

// TestLabLeavesNothing: a program of the lab that is killed takes its machine
// with it, and the next one removes what it left.
func TestLabLeavesNothing(t *testing.T) {
	t.Parallel()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "lab")
	build := exec.Command("go", "build", "-o", bin, "./hack/lab")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tmp := t.TempDir()
	start := func() (*exec.Cmd, io.Writer) {
		cmd := exec.Command(bin, "shell")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "TMPDIR="+tmp)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, in
	}
	cmd, in := start()
	fmt.Fprintln(in, "sleep 600")
	var qemu []int
	for end := time.Now().Add(4 * time.Minute); len(qemu) == 0 || len(dirs(tmp)) == 0; time.Sleep(50 * time.Millisecond) {
		if qemu = qemus(tmp); time.Now().After(end) {
			t.Fatalf("no machine after 4 minutes")
		}
	}
	time.Sleep(time.Second)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	for end := time.Now().Add(5 * time.Second); len(qemus(tmp)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("QEMU %v outlives the program that started it", qemus(tmp))
		}
	}
	left := dirs(tmp)
	if len(left) == 0 {
		t.Fatal("the killed program left nothing: the test tests nothing")
	}
	// Another one, ended as people end it.
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	next := exec.CommandContext(ctx, bin, "shell")
	next.Dir, next.Env, next.Stdin = root, append(os.Environ(), "TMPDIR="+tmp), strings.NewReader("true\n")
	if out, err := next.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left := dirs(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if q := qemus(tmp); len(q) > 0 {
		t.Errorf("QEMU %v still runs", q)
	}
}

func dirs(tmp string) []string {
	out, _ := filepath.Glob(filepath.Join(tmp, "drivebay-lab-*"))
	return out
}

// qemus lists the QEMU processes whose machines live below a folder.
func qemus(tmp string) []int {
	var out []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		b, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(b), "qemu-system") && bytes.Contains(b, []byte(tmp)) {
			var pid int
			fmt.Sscanf(name, "/proc/%d/", &pid)
			out = append(out, pid)
		}
	}
	return out
}

// TestLabWakes: a machine whose processors stand still is noticed and goes on.
func TestLabWakes(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	m.Must(m.Pause(t.Context()))
	if m.Sh("echo awake") != "awake" {
		t.Error("it says something else")
	}
}
