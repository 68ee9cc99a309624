//go:build lab

package suite

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// The passes of csi-sanity: all of it on partitions, and what makes a difference
// on logical volumes, each of which takes ten to thirty seconds here.
// DRIVEBAY_SANITY asks for others, such as "thin/ext4" for all of it.
const (
	blockPass   = "partition/block:Node.Service.*should.work,should.be.idempotent"
	thickPasses = "partition/ext4 " + blockPass
	thinPasses  = "thin/xfs:existing.source.snapshot,ExpandVolume.*work,Node.Service.*should.work"
)

// TestLabVolumeSanity runs csi-sanity in the guest, against the daemon. With -short, not all of it on a partition:
// that is what TestRootSanity runs on loop devices.
func TestLabVolumeSanity(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		nvme("NVA"), scsi("SDA", 0x5000c500b0000000), nvme("NVB"), scsi("SDB", 0x5000c500b0000001), sized(nvme("POOL"), 8<<30, 512)}})
	o := orchestrate(t, m)
	run := func(passes string) {
		if passes != "" {
			lab.Run(t, m, "./csi", "-tags=lab", "CSI_ENDPOINT=unix://"+csiSocket, "DRIVEBAY_SANITY="+passes, "-run", "LabSanity")
		}
	}
	asked := os.Getenv("DRIVEBAY_SANITY")
	if !strings.HasPrefix(asked, "thin") {
		o.only("NVA", "NVB", "SDA", "SDB")
		thick := thickPasses
		if testing.Short() {
			thick = blockPass
		}
		run(cmp.Or(asked, thick))
	}
	if asked == "" || strings.HasPrefix(asked, "thin") {
		// With a volume in it the pool is not made and removed by every test.
		o.create("keeps-the-pool", drivebay.BackingThin, "", 4<<20, "POOL")
		run(cmp.Or(asked, thinPasses))
	}
}
