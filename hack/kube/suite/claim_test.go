//go:build kube

package suite

import (
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

// TestKubeClaim: a pod uses a volume through its claim. The data stays when the pod is replaced, and the volume can be
// deleted once no pod uses it.
func TestKubeClaim(t *testing.T) {
	createVolume(t, "claim")
	began := time.Now()
	startPod(t, "claim", "echo kept >/data/file; sync; while :; do sleep 1; done")
	t.Logf("pod ready after %.1f s", time.Since(began).Seconds())

	kubectl(t, "", "delete", "pod", "claim")
	startPod(t, "claim", "while :; do sleep 1; done")
	if got := kubectl(t, "", "exec", "claim", "--", "cat", "/data/file"); got != "kept" {
		t.Errorf("the second pod reads %q", got)
	}

	kubectl(t, "", "delete", "pod/claim", "pvc/claim", "pv/claim")
	eventually(t, time.Minute, func() string {
		if out := drivebay(t, "volumes", "-o", "json"); strings.Contains(out, "/var/lib/kubelet") {
			return "the volume is still mounted: " + out
		}
		return ""
	})
	drivebay(t, "volume", "delete", "claim", "--yes")
}
