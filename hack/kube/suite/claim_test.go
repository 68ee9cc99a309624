//go:build kube

package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestKubeDriverRegistered: the kubelet has the driver, with the node's name and its topology.
func TestKubeDriverRegistered(t *testing.T) {
	eventually(t, time.Minute, func() string {
		got := kubectl(t, "", "get", "csinode", "node1", "-o", "jsonpath={range .spec.drivers[*]}{.name} {.nodeID} {.topologyKeys}{end}")
		if want := `drivebay.io node1 ["topology.drivebay.io/node"]`; got != want {
			return "CSINode has the drivers " + got + ", want " + want
		}
		return ""
	})
}

// TestKubeClaim: a claim becomes a volume through the controller, and a pod is ready with it. The data stays when the pod is
// replaced. The claim grows under the pod, through csi-resizer and the controller. Nothing is left of it when it is deleted.
func TestKubeClaim(t *testing.T) {
	createClaim(t, "claim")
	began := time.Now()
	startPod(t, "claim", "echo kept >/data/file; sync; while :; do sleep 1; done")
	t.Logf("pod ready after %.1f s", time.Since(began).Seconds())
	id := volumeOf(t, "claim")
	if got := kubectl(t, "", "get", "volumes.drivebay.io", id, "-o", "jsonpath={.status.phase} {.spec.node}"); got != "Ready node1" {
		t.Errorf("the Volume is %q", got)
	}

	kubectl(t, "", "delete", "pod", "claim")
	startPod(t, "claim", "while :; do sleep 1; done")
	if got := kubectl(t, "", "exec", "claim", "--", "cat", "/data/file"); got != "kept" {
		t.Errorf("the second pod reads %q", got)
	}

	kubectl(t, "", "patch", "pvc", "claim", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	took := eventually(t, time.Minute, func() string {
		if got := kubectl(t, "", "get", "pvc", "claim", "-o", "jsonpath={.status.capacity.storage}"); got != "2Gi" {
			return "the claim has " + got
		}
		return ""
	})
	var blocks, size int64
	if _, err := fmt.Sscan(kubectl(t, "", "exec", "claim", "--", "stat", "-f", "-c", "%b %S", "/data"), &blocks, &size); err != nil || blocks*size < 19<<26 {
		t.Errorf("the filesystem has %d bytes: %v", blocks*size, err)
	}
	t.Logf("2 GiB after %.1f s", took.Seconds())

	kubectl(t, "", "delete", "pod/claim", "pvc/claim")
	eventually(t, time.Minute, func() string {
		if out := drivebay(t, "volumes", "-o", "json"); strings.Contains(out, id) {
			return "the node still has the volume: " + out
		}
		if out := kubectl(t, "", "get", "volumes.drivebay.io", "-o", "name"); strings.Contains(out, id) {
			return "the Volume is still there: " + out
		}
		return ""
	})
}

// TestKubeDrives: the node shows each of its drives as an object, claimed by the configuration of the chart.
func TestKubeDrives(t *testing.T) {
	eventually(t, time.Minute, func() string {
		out := kubectl(t, "", "get", "drives", "-o", `jsonpath={range .items[*]}{.status.node} {.status.claimedBy}{"\n"}{end}`)
		if got := strings.Count(out, "node1 configuration"); got != 7 {
			return fmt.Sprintf("%d of 7 drives are claimed: %s", got, out)
		}
		return ""
	})
}
