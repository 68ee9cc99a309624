package csi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestProbeNamesWhatIsMissing: Probe is FAILED_PRECONDITION with the reason where a program or
// the privilege for volumes is missing, and ready where all is there. The capabilities of the
// plugin are the same on each of these machines.
func TestProbeNamesWhatIsMissing(t *testing.T) {
	capabilities := map[string]bool{}
	for name, c := range map[string]struct {
		without []string
		fault   string
		want    string
	}{
		"all is there": {},
		"no LVM":       {without: []string{"lvm", "cryptsetup"}},
		"no mkfs":      {without: []string{"mkfs.ext4"}, want: "mkfs.ext4 is not installed"},
		"no mkfs.xfs":  {without: []string{"mkfs.xfs"}, want: "mkfs.xfs is not installed"},
		"no privilege": {fault: "permission", want: "run it as root"},
	} {
		t.Run(name, func(t *testing.T) {
			sim, err := hostsim.New(hostsim.Spec{Without: c.without, Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "2TB"}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(sim.Close)
			if c.fault != "" {
				for _, serial := range []string{"NVME0001", "NVME0002"} {
					if err := sim.Inject(hostsim.Fault{Drive: serial, Fault: c.fault}); err != nil {
						t.Fatal(err)
					}
				}
			}
			drives, volumes := engines(t, sim, drivemgr.Options{Claim: claim(t, "all")}, kubelet)
			endpoint := serve(t, drives, volumes)
			var answer string
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				answer, err = csi.Call(t.Context(), endpoint, "Probe", "")
				if (err != nil) == (c.want != "") && (err != nil || strings.Contains(answer, "true")) {
					break
				}
			}
			if c.want == "" && (err != nil || !strings.Contains(answer, "true")) {
				t.Errorf("Probe: %s, %v", answer, err)
			}
			if c.want != "" && (status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Probe: %s, %v", answer, err)
			}
			out, err := csi.Call(t.Context(), endpoint, "GetPluginCapabilities", "")
			if err != nil {
				t.Fatal(err)
			}
			capabilities[out] = true
		})
	}
	if len(capabilities) != 1 {
		t.Errorf("capabilities of the plugin: %v", capabilities)
	}
}
