//go:build kube

package suite

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/kube/cluster"
)

// TestKubeAddons: the manager of CSI-Addons finds the sidecars of the chart, and a ReclaimSpaceJob frees below the volume of a
// pod what the pod has deleted: the controller passes it to the node. EncryptionKeyRotationJob needs an encrypted volume, and that device-mapper, which the kernel of
// a test machine may not have: hack/csiaddons runs it on simulated drives.
func TestKubeAddons(t *testing.T) {
	for _, name := range []string{"crds.yaml", "rbac.yaml", "csi-addons-config.yaml", "setup-controller.yaml"} {
		text, err := os.ReadFile(filepath.Join(lab.Addons(), name))
		if err != nil {
			t.Fatal(err)
		}
		manifest := strings.ReplaceAll(string(text), "quay.io/csiaddons/k8s-controller:latest", cluster.AddonsManager)
		if name != "setup-controller.yaml" && name != "crds.yaml" { // the namespace is in the last one
			kubectl(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: csi-addons-system}\n", "apply", "-f", "-")
		}
		kubectl(t, manifest, "apply", "--server-side", "-f", "-")
	}
	kubectl(t, "", "create", "namespace", "shop")
	commands := guide(t, "## CSI-Addons")
	if len(commands) != 2 {
		t.Fatalf("the section has the commands %q", commands)
	}
	shell(t, commands[0])
	installed(t)
	took := eventually(t, 2*time.Minute, func() string {
		return kubectlHas(t, "Connected Connected Connected", "--namespace", "drivebay", "get", "csiaddonsnodes", "-o", "jsonpath={.items[*].status.state}")
	})
	t.Logf("the manager is connected after %.1f s", took.Seconds())

	createClaim(t, "reclaim")
	startPod(t, "reclaim", "sleep 3600")
	empty := stored(t)
	kubectl(t, "", "exec", "reclaim", "--", "sh", "-c", "dd if=/dev/urandom of=/data/blob bs=1M count=256 conv=fsync && rm /data/blob && sync")
	if full := stored(t); full < empty+200<<20 {
		t.Fatalf("%d bytes are stored after 256 MiB were written, %d before", full, empty)
	}
	kubectl(t, `apiVersion: csiaddons.openshift.io/v1alpha1
kind: ReclaimSpaceJob
metadata: {name: reclaim}
spec: {target: {persistentVolumeClaim: reclaim}, backOffLimit: 3, retryDeadlineSeconds: 60}
`, "apply", "-f", "-")
	took = eventually(t, 2*time.Minute, func() string {
		return kubectlHas(t, "Succeeded", "get", "reclaimspacejob", "reclaim", "-o", "jsonpath={.status.result} {.status.message}")
	})
	t.Logf("the job ends after %.1f s", took.Seconds())
	if after := stored(t); after > empty+20<<20 {
		t.Errorf("%d bytes are stored after the job, %d before the 256 MiB were written", after, empty)
	}
	if task := kubectl(t, "", "get", "volumes.drivebay.io", "-o", "jsonpath={.items[*].status.task.request}"); task == "" {
		t.Error("the job has not come through the controller")
	}
}

// stored is how many bytes the drives take.
func stored(t *testing.T) (bytes int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(lab.Rack(), "bay*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		var s syscall.Stat_t
		if err := syscall.Stat(f, &s); err != nil {
			t.Fatal(err)
		}
		bytes += s.Blocks * 512
	}
	return bytes
}
