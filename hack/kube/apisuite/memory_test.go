//go:build kube

package apisuite

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestKubeAPIMemory measures the daemon of a node with 100 drives, 500 volumes in use and the objects of all of them: on loop
// devices, because a simulated machine keeps 500 filesystems in the memory of the daemon.
func TestKubeAPIMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("loop devices take root")
	}
	a := Up(t)
	a.buildDaemon(t)
	var out bytes.Buffer
	bench := exec.CommandContext(t.Context(), "go", "run", "./hack/bench", "-only", "loop", "-binary", a.file("drivebay"), "-kubeconfig", a.Kubeconfig)
	bench.Dir, bench.Stdout, bench.Stderr = a.Root, &out, &out
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bench.Wait() }()
	Eventually(t, 10*time.Minute, "all drives and volumes have objects", func() string {
		if len(ended) > 0 {
			t.Fatalf("the bench has ended: %v: %s", <-ended, out.String())
		}
		drives := strings.Fields(a.Kubectl(t, "", "get", "drives.drivebay.io", "-o", "jsonpath={.items[*].status.health}"))
		ready := strings.Count(a.Kubectl(t, "", "get", "volumes.drivebay.io", "-o", "jsonpath={.items[*].status.csiStatus}"), "PUBLISHED")
		if len(drives) < 100 || ready != 500 {
			return fmt.Sprintf("%d drives, %d published volumes", len(drives), ready)
		}
		return ""
	})
	err := <-ended
	t.Log(out.String())
	_, row, ok := strings.Cut(out.String(), "resident memory")
	if row, _, _ = strings.Cut(row, "\n"); err != nil || !ok || !strings.HasSuffix(strings.TrimSpace(row), "ok") {
		t.Errorf("resident memory: %s, %v", row, err)
	}
}
