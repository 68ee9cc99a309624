//go:build kube

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/kube/cluster"
)

// reported is the limit within which the kubelet says that a volume is abnormal. It asks every 5 to 10 s (config/kubelet.yaml).
const reported = 15 * time.Second

// TestKubeHealth: when the drive below a mounted volume answers with errors, the kubelet says so within 15 s, and when the drive
// works again, it takes that back. Kubernetes 1.36 has an event of the pod and a metric (KEP-1432), 1.37 has the status of the
// pod and of the node's storage.
func TestKubeHealth(t *testing.T) {
	var failing string
	for _, d := range drives(t) {
		switch {
		case strings.Contains(d.Serial, "/rack/bay"):
			drivebay(t, "cordon", d.ID)
			defer drivebay(t, "uncordon", d.ID)
		case strings.Contains(d.Serial, "/rack/fuse"):
			failing = d.ID
		}
	}
	createClaim(t, "health")
	// The pod reads past the cache: the daemon itself asks an idle drive once a minute only.
	startPod(t, "health", "dd if=/dev/zero of=/data/file bs=1M count=4 conv=fsync; while :; do dd if=/data/file of=/dev/null bs=64k count=1 iflag=direct; sleep 0.5; done")
	abnormal, normal := map[string]func() string{
		"event of the pod": func() string {
			return kubectlHas(t, "VolumeConditionAbnormal", "get", "events", "--field-selector", "involvedObject.name=health", "-o", "jsonpath={.items[*].reason}")
		},
		"metric of the kubelet": func() string { return metric(t, "health", "1") },
	}, map[string]func() string{
		"metric of the kubelet": func() string { return metric(t, "health", "0") },
	}
	if cluster.Version() == cluster.Version137 {
		pod := []string{"get", "pod", "health", "-o", "jsonpath={.status.volumeHealth}"}
		node := []string{"get", "csinode", cluster.NodeName, "-o", "jsonpath={.status.storageHealth}"}
		abnormal = map[string]func() string{
			"status of the pod":  func() string { return kubectlHas(t, `"status":`, pod...) },
			"status of the node": func() string { return kubectlHas(t, `"status":`, node...) },
		}
		normal = map[string]func() string{
			"status of the pod":  func() string { return kubectlHasNot(t, `"status":`, pod...) },
			"status of the node": func() string { return kubectlHasNot(t, `"status":`, node...) },
		}
	}
	all := func(limit time.Duration, checks map[string]func() string) {
		t.Helper()
		began := time.Now()
		for name, check := range checks {
			eventually(t, limit-time.Since(began), check)
			t.Logf("%s after %.1f s", name, time.Since(began).Seconds())
		}
	}
	all(time.Minute, normal)

	lab.Disk.Fail(true)
	defer lab.Disk.Fail(false)
	all(reported, abnormal)

	lab.Disk.Fail(false)
	kubectl(t, "", "delete", "pod", "health") // its filesystem may have shut itself down
	startPod(t, "health", "sleep 3600")
	eventually(t, time.Minute, func() string {
		// Again, if the daemon had not read the last errors of the kernel yet. It is an error if there is nothing to acknowledge.
		_ = lab.Drivebay(t.Context(), "drive", "acknowledge", failing).Run()
		return kubectlHas(t, "GOOD OPERATIVE", "get", "volumes.drivebay.io", volumeOf(t, "health"), "-o", "jsonpath={.status.health} {.status.operationalStatus}")
	})
	all(2*time.Minute, normal)
}

// drive is what the test reads of a drive. The serial of a loop device is the path of its file.
type drive struct{ ID, Name, Serial string }

func drives(t *testing.T) []drive {
	var list struct{ Drives []drive }
	decode(t, &list, "drives")
	return list.Drives
}

// metric complains unless the kubelet's metric of a claim has a value.
func metric(t *testing.T, claim, value string) string {
	metrics := kubectl(t, "", "get", "--raw", "/api/v1/nodes/node1/proxy/metrics")
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "kubelet_volume_stats_health_status_abnormal{") && strings.Contains(line, `"`+claim+`"`) {
			if fields := strings.Fields(line); fields[len(fields)-1] == value {
				return ""
			}
			return line
		}
	}
	return "the kubelet has no metric of claim " + claim
}

func kubectlHas(t *testing.T, want string, args ...string) string {
	if got := kubectl(t, "", args...); !strings.Contains(got, want) {
		return "kubectl " + strings.Join(args, " ") + " has " + got + ", want " + want
	}
	return ""
}

func kubectlHasNot(t *testing.T, unwanted string, args ...string) string {
	if got := kubectl(t, "", args...); strings.Contains(got, unwanted) {
		return "kubectl " + strings.Join(args, " ") + " has " + got
	}
	return ""
}
