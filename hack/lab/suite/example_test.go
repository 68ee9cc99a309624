//go:build lab

package suite

import (
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabExample: a drive that is pulled is OFFLINE within a second.
func TestLabExample(t *testing.T) {
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		{ID: "NVA", Kind: machine.NVMe, Serial: "NVA"},
		{ID: "SDA", Kind: machine.SCSI, Serial: "SDA", Vendor: "LABVEND", Model: "LABSCSI", WWN: 0x5000c500b0000000, RPM: 7200},
	}})
	d := m.Daemon("poll: {evidence: 10s}\n") // drivebay serve in the guest; its client is d

	m.Must(m.Unplug(t.Context(), "NVA"))
	_, took := d.UntilDrive("NVA", "pulled", 5*time.Second, func(x *drivebay.Drive) error {
		if x.Status != drivebay.StatusOffline {
			return fmt.Errorf("it is %s", x.Status) // becomes the reason of the failure
		}
		return nil
	})
	if took > time.Second {
		t.Errorf("the pull was seen after %v", took)
	}
	if x := d.BySerial("SDA"); x.Health != drivebay.HealthGood {
		t.Errorf("the other drive is %s", x.Health)
	}
}
