//go:build lab

package suite

import (
	"os"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabVolumeKilled: whoever makes, copies, grows and removes logical volumes is
// killed after each step. Linear volumes have no step that thin ones have not, but
// for the zeros: they are for who has three minutes more (DRIVEBAY_LAB_LONG=1).
func TestLabVolumeKilled(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("thin1"), scsi("lvm1", 0x5000c500b0000000)}})
	which := "LabKilled/thin"
	if os.Getenv("DRIVEBAY_LAB_LONG") != "" {
		which = "LabKilled"
	}
	lab.Run(t, m, "./volume", "-tags=lab", "-run", which)
}
