//go:build root

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// childRoot is set in the process that the test kills: the folder of its cluster.
const childRoot = "DRIVEBAY_KUBE_TEST_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		if err := startAndWait(root); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// startAndWait starts a node without Kubernetes, prints the PID of its process 1, and waits to be killed.
func startAndWait(root string) error {
	ctx, c := context.Background(), newCluster(root)
	if err := errors.Join(c.takeLock(ctx), os.MkdirAll(c.run, 0o755), os.MkdirAll(c.logs, 0o755)); err != nil {
		return err
	}
	if err := c.startNode(ctx); err != nil {
		return err
	}
	if err := c.startProgram("sleep", "sleep", "infinity"); err != nil {
		return err
	}
	devices, err := c.attachDrives(ctx)
	if err != nil {
		return err
	}
	// What the kubelet does for a volume of mode Block.
	if out, err := exec.Command("losetup", "--find", "/dev/"+devices[0]).CombinedOutput(); err != nil {
		return fmt.Errorf("loop device over a loop device: %w: %s", err, out)
	}
	fmt.Println(c.node.Process.Pid)
	select {}
}

// TestRootKilledRun: the node ends with the process that started it, even by SIGKILL, and Clean removes the rest:
// the loop devices, the mount, the folders.
func TestRootKilledRun(t *testing.T) {
	root := t.TempDir()
	_, noKubelet := os.Stat("/var/lib/kubelet")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	c := newCluster(root)
	before, err := c.loops()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	pid, perr := strconv.Atoi(strings.TrimSpace(line))
	if err := errors.Join(err, perr, Clean(t.Context(), root)); err != nil {
		t.Fatalf("%v (the child printed %q)", err, line)
	}

	if len(before) != bays+2 {
		t.Errorf("the run had the loop devices %v", before)
	}
	if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); len(text) > 0 { // a zombie has none
		t.Errorf("process 1 of the node, %d, still runs", pid)
	}
	if after, err := c.loops(); len(after) > 0 || err != nil {
		t.Errorf("left: %v %v", after, err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), root) {
		t.Errorf("a mount is left: %v", err)
	}
	if _, err := os.Stat(c.run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", c.run, err)
	}
	if _, err := os.Stat("/var/lib/kubelet"); errors.Is(err, os.ErrNotExist) != errors.Is(noKubelet, os.ErrNotExist) {
		t.Errorf("/var/lib/kubelet: before %v, after %v", noKubelet, err)
	}
}
