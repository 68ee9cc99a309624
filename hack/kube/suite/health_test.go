//go:build kube

package suite

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestKubeHealth: when the drive below a mounted volume answers with errors, the pod gets an event and the kubelet's
// metric becomes 1 (KEP-1432 in Kubernetes 1.36).
func TestKubeHealth(t *testing.T) {
	for _, d := range drives(t) {
		if strings.Contains(d.Serial, "/rack/bay") {
			drivebay(t, "cordon", d.ID)
			defer drivebay(t, "uncordon", d.ID)
		}
	}
	createVolume(t, "health")
	startPod(t, "health", "while :; do sleep 1; done")
	eventually(t, time.Minute, func() string { return abnormal(t, "health", "0") })

	lab.Disk.Fail(true)
	defer lab.Disk.Fail(false)
	took := eventually(t, 2*time.Minute, func() string {
		return kubectlHas(t, "VolumeConditionAbnormal", "get", "events", "--field-selector", "involvedObject.name=health", "-o", "jsonpath={.items[*].reason}")
	})
	t.Logf("event after %.1f s", took.Seconds())
	eventually(t, time.Minute, func() string { return abnormal(t, "health", "1") })
}

// drive is what the test reads of a drive. The serial of a loop device is the path of its file.
type drive struct{ ID, Serial string }

func drives(t *testing.T) []drive {
	var list struct{ Drives []drive }
	if err := json.Unmarshal([]byte(drivebay(t, "drives", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	return list.Drives
}

// abnormal complains unless the kubelet's metric of a claim has a value.
func abnormal(t *testing.T, claim, value string) string {
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
