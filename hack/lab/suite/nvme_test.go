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

// TestLabNVMeCriticalWarning sets each bit of the health log's critical warning
// at run time: the verdict of docs/health-rules.md follows within one poll.
func TestLabNVMeCriticalWarning(t *testing.T) {
	t.Parallel()
	bits := []struct {
		id   string
		bit  uint8
		want drivebay.Health
		code string
	}{
		{"NVSPARE", 1, drivebay.HealthBad, "NVMeSpare"},
		{"NVTEMP", 2, drivebay.HealthSuspect, "NVMeHeat"},
		{"NVRELIABLE", 4, drivebay.HealthBad, "NVMeReliability"},
		{"NVREADONLY", 8, drivebay.HealthBad, "NVMeReadOnly"},
		{"NVBACKUP", 16, drivebay.HealthSuspect, "NVMeBackup"},
	}
	spec := machine.Spec{Drives: []machine.Drive{nvme("NVWELL")}}
	for _, b := range bits {
		spec.Drives = append(spec.Drives, nvme(b.id))
	}
	m := lab.Start(t, spec)
	d := m.Daemon(quick)
	began := time.Now()
	for _, b := range bits {
		m.Must(m.SetCriticalWarning(t.Context(), b.id, b.bit))
	}
	for _, b := range bits {
		x, _ := d.UntilDrive(b.id, fmt.Sprintf("critical warning %d", b.bit), poll, judged(b.want, b.code))
		if x.Evidence.NVMe.CriticalWarning != b.bit {
			t.Errorf("%s: critical warning %d, set was %d", b.id, x.Evidence.NVMe.CriticalWarning, b.bit)
		}
	}
	within(t, "every critical warning judged", time.Since(began), poll)
	if x := d.BySerial("NVWELL"); x.Health != drivebay.HealthGood {
		t.Errorf("the drive that nothing was done to is %s: %s", x.Health, findings(x))
	}
	for _, b := range bits {
		m.Must(m.SetCriticalWarning(t.Context(), b.id, 0))
	}
	// The drive says that all is well again; that it once was not is kept.
	for _, b := range bits {
		d.UntilDrive(b.id, "warning taken back", poll, func(x *drivebay.Drive) error {
			if x.Evidence.NVMe.CriticalWarning != 0 {
				return fmt.Errorf("critical warning %d", x.Evidence.NVMe.CriticalWarning)
			}
			if len(x.Findings) == 0 || x.Findings[0].Gone.IsZero() {
				return fmt.Errorf("findings %s, none marked as gone", findings(x))
			}
			return nil
		})
	}
}

// TestLabNVMePaths: a drive with two controllers is one drive. It stays in use
// with one of them and is OFFLINE without both.
func TestLabNVMePaths(t *testing.T) {
	t.Parallel()
	two := nvme("NVTWO")
	two.Paths, two.Block = 2, 4096
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{two, nvme("NVONE")}})
	d := m.Daemon(quick)
	x := d.BySerial("NVTWO")
	if len(x.Paths) != 2 || x.LogicalBlock != 4096 {
		t.Fatalf("it has %d paths and blocks of %d bytes: %+v", len(x.Paths), x.LogicalBlock, x.Paths)
	}
	m.Sh("dd if=/dev/urandom of=/dev/%s bs=4096 count=16 oflag=direct status=none", x.Name)
	before := m.Sh("dd if=/dev/%s bs=4096 count=16 iflag=direct status=none | sha256sum", x.Name)

	m.Must(m.UnplugPath(t.Context(), "NVTWO", 0))
	after, took := d.UntilDrive("NVTWO", "one path pulled", 5*time.Second, func(x *drivebay.Drive) error {
		if len(x.Paths) != 1 || x.Status != drivebay.StatusOnline {
			return fmt.Errorf("%s with %d paths", x.Status, len(x.Paths))
		}
		return nil
	})
	within(t, "loss of a path seen", took, time.Second)
	if after.ID != x.ID {
		t.Errorf("with one path it is %s, with two it was %s", after.ID, x.ID)
	}
	if sum := m.Sh("dd if=/dev/%s bs=4096 count=16 iflag=direct status=none | sha256sum", after.Name); sum != before {
		t.Errorf("the data read through the other path is not what was written")
	}
	m.Must(m.UnplugPath(t.Context(), "NVTWO", 1))
	_, took = d.UntilDrive("NVTWO", "both paths pulled", 5*time.Second, is(drivebay.StatusOffline))
	within(t, "loss of the last path seen", took, time.Second)
}
