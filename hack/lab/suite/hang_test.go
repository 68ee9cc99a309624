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

// TestLabHang: a drive that answers no read is seen as frozen, and the evidence
// of the others stays as fresh as before.
func TestLabHang(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		scsi("SDHANG", 0x5000c500b0000000), scsi("SDWELL", 0x5000c500b0000001), nvme("NVWELL"), sata("ATWELL", 0x5000c500a0000000)}})
	d := m.Daemon(quick)
	name := m.Name("SDHANG")
	m.Must(m.Hang(t.Context(), "SDHANG"))
	hung := time.Now()
	m.Sh("(dd if=/dev/%s of=/dev/null bs=64k count=4 iflag=direct 2>/dev/null </dev/null &) ", name)
	d.UntilDrive("SDHANG", "frozen", 30*time.Second, judged(drivebay.HealthSuspect, "KernelFrozen"))
	// DESIGN: a hang is seen within ten seconds of the first request that waits.
	within(t, "hang seen", time.Since(hung), 10*time.Second)

	began := m.Now()
	fresh := func(x *drivebay.Drive) error {
		if x.Evidence == nil || x.Evidence.At.Before(began) {
			return fmt.Errorf("last looked at %v before that", began.Sub(x.Evidence.At))
		}
		return nil
	}
	for _, id := range []string{"SDWELL", "NVWELL", "ATWELL"} {
		x, _ := d.UntilDrive(id, "looked at while the other hangs", poll, fresh)
		if x.Health != drivebay.HealthGood || x.Status != drivebay.StatusOnline {
			t.Errorf("%s is %s, %s: %s", id, x.Status, x.Health, findings(x))
		}
	}
	m.Must(m.Heal(t.Context(), "SDHANG"))
	d.UntilDrive("SDHANG", "not frozen any more", 30*time.Second, func(x *drivebay.Drive) error {
		if x.Kernel.Frozen != 0 {
			return fmt.Errorf("frozen for %v", x.Kernel.Frozen)
		}
		return nil
	})
}

// TestLabSlow: slow is not broken.
func TestLabSlow(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{scsi("SDSLOW", 0x5000c500b0000000), nvme("NVSLOW")}})
	d := m.Daemon(quick)
	for _, id := range []string{"SDSLOW", "NVSLOW"} {
		m.Must(m.Slow(t.Context(), id, machine.Limit{IOPS: 5}))
		took := m.Sh("s=$(date +%%s%%N); dd if=/dev/%s of=/dev/null bs=4096 count=40 iflag=direct 2>/dev/null; echo $((($(date +%%s%%N)-s)/1000000))", m.Name(id))
		var ms int
		fmt.Sscan(took, &ms)
		if ms < 4000 {
			t.Errorf("%s: 40 reads at five a second took %d ms", id, ms)
		}
		if x := d.BySerial(id); x.Health != drivebay.HealthGood || x.Status != drivebay.StatusOnline || x.Kernel.Frozen != 0 {
			t.Errorf("%s is %s, %s: %s", id, x.Status, x.Health, findings(x))
		}
		m.Must(m.Heal(t.Context(), id))
	}
}
