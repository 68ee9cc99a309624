//go:build lab

package suite

import (
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabReplication runs the engine's replicated volumes on a kernel with DRBD.
func TestLabReplication(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	lab.Run(t, m, "./volume", "-tags=root,lab", "-run", "RootLabReplication")
}
