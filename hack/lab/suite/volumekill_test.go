//go:build lab

package suite

import (
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabVolumeKilled: whoever makes, copies, grows and removes logical volumes is
// killed after each step.
func TestLabVolumeKilled(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("thin1"), scsi("lvm1", 0x5000c500b0000000)}})
	lab.Run(t, m, "./volume", "-tags=lab", "-run", "LabKilled")
}
