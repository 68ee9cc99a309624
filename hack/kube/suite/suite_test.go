//go:build kube

// Package suite tests the chart of drivebay in a real Kubernetes cluster of one node.
package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/kube/cluster"
)

// lab is the cluster of all tests. They run one after the other.
var lab *cluster.Cluster

var root string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if root, err = filepath.Abs("../../.."); err != nil {
		return failed(err)
	}
	began := time.Now()
	if err := cluster.Build(ctx, root, cluster.Version()); err != nil {
		return failed(err)
	}
	fmt.Printf("built in %.1f s\n", time.Since(began).Seconds())
	began = time.Now()
	if lab, err = cluster.Up(ctx, root, cluster.Version()); err != nil {
		return failed(err)
	}
	fmt.Printf("chart installed after %.1f s\n", time.Since(began).Seconds())
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code = <-done:
	case <-ctx.Done():
		code = 1
	}
	// Nothing is printed before: after ctrl-c the reader of the output may be gone, and a write would end this process.
	if err := lab.Down(); err != nil {
		return failed(err)
	}
	return code
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "kube:", err)
	return 1
}

// kubectl runs kubectl and fails the test if it fails.
func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := lab.Kubectl(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// drivebay runs a command of drivebay on the daemon of the node.
func drivebay(t *testing.T, args ...string) string {
	t.Helper()
	out, err := lab.Drivebay(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("drivebay %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// decode decodes what a command prints as JSON. Its notes are on standard error: lines that the kernel did not log are one, after a disk has failed.
func decode(t *testing.T, v any, args ...string) {
	t.Helper()
	var notes bytes.Buffer
	cmd := lab.Drivebay(t.Context(), append(args, "-o", "json")...)
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, v)
	}
	if err != nil {
		t.Fatalf("drivebay %s: %v: %s%s", strings.Join(args, " "), err, out, &notes)
	}
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, limit time.Duration, check func() string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		complaint := check()
		if complaint == "" {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("after %s: %s", limit, complaint)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// createClaim creates a claim of 1 GiB. It is bound when its first pod is scheduled.
func createClaim(t *testing.T, name string) {
	t.Helper()
	kubectl(t, fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec: {accessModes: [ReadWriteOnce], storageClassName: drivebay-xfs, resources: {requests: {storage: 1Gi}}}
`, name), "apply", "-f", "-")
	t.Cleanup(func() {
		// Those that a test deleted are gone. The context of the test has ended.
		if _, err := lab.Kubectl(context.Background(), "", "delete", "--ignore-not-found", "--timeout=60s", "pod/"+name, "pvc/"+name); err != nil {
			t.Error(err)
		}
	})
}

// volumeOf returns the name of the Volume object of a claim, which is also the id of the volume on its node.
func volumeOf(t *testing.T, claim string) string {
	t.Helper()
	pv := kubectl(t, "", "get", "pvc", claim, "-o", "jsonpath={.spec.volumeName}")
	return kubectl(t, "", "get", "pv", pv, "-o", "jsonpath={.spec.csi.volumeHandle}")
}

// startPod starts a pod that uses the claim of its name and runs a command, and waits until it is ready.
func startPod(t *testing.T, name, command string) {
	t.Helper()
	kubectl(t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: drivebay.example/busybox:1
    command: [sh, -c, %[2]q]
    volumeMounts: [{name: v, mountPath: /data}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: %[1]s}}]
`, name, command), "apply", "-f", "-")
	if _, err := lab.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "--timeout=120s", "pod/"+name); err != nil {
		t.Fatalf("%v\n%s", err, kubectl(t, "", "describe", "pod", name))
	}
}
