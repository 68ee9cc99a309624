package csi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"google.golang.org/grpc/status"
)

// TestCapacityOfCapability: there is room for volumes with a capability if, and only if, one can be made.
func TestCapacityOfCapability(t *testing.T) {
	for name, c := range map[string]struct{ without, size, capability string }{
		"xfs, no mkfs.xfs":    {"mkfs.xfs", "2TB", `"mount":{"fsType":"xfs"}`},
		"xfs, a small drive":  {"", "200MB", `"mount":{"fsType":"xfs"}`}, // it needs 300 MiB
		"xfs":                 {"", "2TB", `"mount":{"fsType":"xfs"}`},
		"block, no mkfs.ext4": {"mkfs.ext4", "2TB", `"block":{}`},
		"ext4, no mkfs.ext4":  {"mkfs.ext4", "2TB", `"mount":{}`},
	} {
		t.Run(name, func(t *testing.T) {
			sim, err := hostsim.New(hostsim.Spec{Without: strings.Fields(c.without), Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: c.size}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(sim.Close)
			drives, volumes := engines(t, sim, drivemgr.Options{Claim: claim(t, "all")}, kubelet)
			endpoint := serve(t, drives, volumes)
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && volumes.Listed() != nil; {
				time.Sleep(20 * time.Millisecond)
			}
			capability := `"volumeCapabilities":[{` + c.capability + `,"accessMode":{"mode":"SINGLE_NODE_WRITER"}}]`
			capacity, err := csi.Call(t.Context(), endpoint, "GetCapacity", `{`+capability+`}`)
			room := err == nil && !strings.Contains(strings.ReplaceAll(capacity, " ", ""), `"maximumVolumeSize":"0"`)
			_, made := csi.Call(t.Context(), endpoint, "CreateVolume", `{"name":"a","capacityRange":{"requiredBytes":1048576},`+capability+`}`)
			if err != nil || room != (made == nil) {
				t.Errorf("GetCapacity: %v %s; CreateVolume: %v %v", err, capacity, status.Code(made), made)
			}
		})
	}
}
