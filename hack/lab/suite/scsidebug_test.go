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

// TestLabScsiDebug: a SCSI drive that announces its failure, one with a bad
// sector and one that the kernel gives up.
func TestLabScsiDebug(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	names := m.ScsiDebug("dev_size_mb=16 add_host=3 statistics=1")
	if len(names) != 3 {
		t.Fatalf("drives %v", names)
	}
	serial := map[string]string{}
	for _, n := range names {
		serial[n] = m.Sh("sg_vpd -r -p sn /dev/%s | tail -c +5 | tr -d ' '", n)
	}
	d := m.Daemon(quick)
	predicts, bad, dies := names[0], names[1], names[2]

	// opts=2: a medium error at sector 1234h.
	m.Sh("echo 2 >/sys/bus/pseudo/drivers/scsi_debug/opts; dd if=/dev/%s of=/dev/null bs=512 skip=$((0x1234)) count=1 iflag=direct 2>/dev/null || true; echo 0 >/sys/bus/pseudo/drivers/scsi_debug/opts", bad)
	x, _ := d.UntilDrive(serial[bad], "medium error", soon, judged(drivebay.HealthSuspect, "KernelMediaErrors"))
	if x.Kernel.MediaErrors24h != 1 {
		t.Errorf("%d medium errors", x.Kernel.MediaErrors24h)
	}

	// The kernel itself sets a drive offline when its error recovery gives up;
	// here by hand, for that takes over a minute.
	m.Sh("echo offline >/sys/block/%s/device/state", dies)
	began := time.Now()
	d.UntilDrive(serial[dies], "offline", soon, func(x *drivebay.Drive) error {
		if x.Kernel.State != "offline" || x.Health.Rank() < drivebay.HealthSuspect.Rank() {
			return fmt.Errorf("state %s, %s: %s", x.Kernel.State, x.Health, findings(x))
		}
		return nil
	})
	within(t, "state offline seen", time.Since(began), 10*time.Second)
	m.Sh("echo running >/sys/block/%s/device/state", dies)
	d.UntilDrive(serial[dies], "running", soon, func(x *drivebay.Drive) error {
		if x.Kernel.State != "running" {
			return fmt.Errorf("state %s", x.Kernel.State)
		}
		return nil
	})

	// All drives of the module share the page: they announce their failure together.
	m.PredictFailure(predicts)
	d.UntilDrive(serial[predicts], "failure predicted", poll, judged(drivebay.HealthBad, "OwnVerdict"))
}

// TestLabDriveOffline: a drive that answers nothing any more is given up by the
// kernel's error recovery; we say so when it does.
func TestLabDriveOffline(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVWELL")}})
	names := m.ScsiDebug("dev_size_mb=16 statistics=1")
	serial := m.Sh("sg_vpd -r -p sn /dev/%s | tail -c +5 | tr -d ' '", names[0])
	d := m.Daemon(quick)
	m.Sh("cd /sys/block/%s/device && echo 2 >timeout && echo 2 >eh_timeout", names[0])
	m.Sh("cd /sys/bus/pseudo/drivers/scsi_debug && echo 1 >every_nth && echo 4 >opts") // 4: no answer
	m.Sh("(dd if=/dev/%s of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null </dev/null &)", names[0])
	x, took := d.UntilDrive(serial, "given up by the kernel", 2*time.Minute, func(x *drivebay.Drive) error {
		if x.Kernel.State != "offline" {
			return fmt.Errorf("state %s, %s: %s", x.Kernel.State, x.Health, findings(x))
		}
		return nil
	})
	t.Logf("offline after %v: %s: %s", took, x.Health, findings(x))
	d.UntilDrive(serial, "held against it", soon, judged(drivebay.HealthBad, "KernelOffline"))
	if w := d.BySerial("NVWELL"); w.Health != drivebay.HealthGood || m.Now().Sub(w.Evidence.At) > poll {
		t.Errorf("the other drive is %s, last looked at %v: %s", w.Health, w.Evidence.At, findings(w))
	}
}
