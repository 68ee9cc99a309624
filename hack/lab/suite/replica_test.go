//go:build lab

package suite

import (
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabLongReplicationKilled: a process that enables, grows and disables a replication is killed after each step; another one gives it up.
func TestLabLongReplicationKilled(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{scsi("partition1", 0x5000c500b0000000), scsi("lvm1", 0x5000c500b0000001)}})
	m.Sh("modprobe drbd usermode_helper=/bin/true")
	lab.Run(t, m, "./volume", "-tags=lab", "-run", "LabReplication(Killed|GivenUp)")
}

// TestLabReplication runs the engine's replicated volumes on a kernel with DRBD.
func TestLabReplication(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	lab.Run(t, m, "./volume", "-tags=root,lab", "-run", "RootLabReplication")
}
