//go:build kube

package apisuite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The budget of the daemon of a node with 100 drives and its objects.
const maxResident = 48 // MiB

// The part of that which the objects of 100 drives and 500 volumes may have. The simulated machine keeps the content of
// 500 filesystems in the memory of the daemon, so that only the difference says something about volumes.
const maxObjects = 20 // MiB

// TestKubeAPIMemory measures the daemon without and with the objects of its drives.
func TestKubeAPIMemory(t *testing.T) {
	a := Up(t)
	big := a.write(t, "rack100.yaml", `machine: rack100
claim: all
enclosures: [{name: top, kind: ses, bays: 50, first: 0}, {name: bottom, kind: ses, bays: 50, first: 50}]
drives:
  - {bays: 0-99, kind: sata-hdd, model: ST16000NM001G-2KK103, size: 16TB, firmware: SN03, serial: "ZL2A{n}"}
`)
	var without float64 // of the last daemon without objects
	for _, rack := range []struct {
		name, file string
		drives     int
		volumes    int
	}{{"rack24", filepath.Join(a.Root, "examples/rack24.yaml"), 24, 0}, {"rack100", big, 100, 0}, {"rack100", big, 100, 500}} {
		for _, kubeconfig := range []string{"", a.Kubeconfig} {
			t.Run(fmt.Sprintf("%s volumes=%d objects=%v", rack.name, rack.volumes, kubeconfig != ""), func(t *testing.T) {
				d := a.Daemon(t, rack.name, rack.file, kubeconfig)
				if kubeconfig != "" {
					mirrored(t, a, d)
				}
				for i := range rack.volumes {
					Eventually(t, time.Minute, "a volume is made", func() string { // the first ones wait until the drives are read
						out, err := d.cli(t, "volume", "create", fmt.Sprint("pvc-", i), "--size", "1GiB")
						if err != nil {
							return out
						}
						return ""
					})
				}
				if rack.volumes > 0 && kubeconfig != "" {
					Eventually(t, 5*time.Minute, "all volumes have objects", func() string {
						if n := strings.Count(a.Kubectl(t, "", "get", "volumes.drivebay.io", "-o", "jsonpath={.items[*].status.phase}"), "Ready"); n != rack.volumes {
							return fmt.Sprint(n)
						}
						return ""
					})
				}
				time.Sleep(time.Minute)
				if n := len(d.Snapshot(t).Drives); n != rack.drives {
					t.Errorf("%d drives", n)
				}
				var samples []float64 // between two collections of garbage it grows
				var most float64
				for range 9 {
					time.Sleep(5 * time.Second)
					var now float64
					now, most = d.Resident(t)
					samples = append(samples, now)
				}
				slices.Sort(samples)
				t.Logf("resident: %.1f MiB (%.1f to %.1f), at most %.1f MiB", samples[4], samples[0], samples[8], most)
				if rack.volumes > 0 {
					if kubeconfig == "" {
						without = samples[4]
					} else if t.Logf("the objects take %.1f MiB", samples[4]-without); samples[4]-without > maxObjects {
						t.Errorf("the objects take %.1f MiB, at most %d MiB are allowed", samples[4]-without, maxObjects)
					}
				} else if samples[4] > maxResident {
					t.Errorf("resident: %.1f MiB, at most %d MiB are allowed", samples[4], maxResident)
				}
				d.Stop(t)
			})
		}
	}
}
