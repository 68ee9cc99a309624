//go:build lab

package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabPowerCut: what the daemon knew before a power cut it knows afterwards.
func TestLabPowerCut(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		nvme("NVSTATE"), nvme("NVBAD"), scsi("SDGONE", 0x5000c500b0000000), sata("ATA", 0x5000c500a0000000)}})
	m.Sh("mkfs.ext4 -q /dev/%s", m.Name("NVSTATE"))
	mount := func() { m.Sh("mkdir -p %s && mount /dev/%s %s", lab.DaemonState, m.Name("NVSTATE"), lab.DaemonState) }
	mount()
	d := m.Daemon(quick)
	m.Must(m.SetCriticalWarning(t.Context(), "NVBAD", 4))
	d.UntilDrive("NVBAD", "bad", poll, judged(drivebay.HealthBad, "NVMeReliability"))
	if err := d.Cordon(t.Context(), "SDGONE", true); err != nil {
		t.Fatal(err)
	}
	m.Must(m.Unplug(t.Context(), "SDGONE"))
	d.UntilDrive("SDGONE", "gone", soon, is(drivebay.StatusOffline))
	before, err := d.Snapshot(t.Context())
	m.Must(err)
	time.Sleep(2 * time.Second) // the store is written a moment after the fact

	m.PowerCut()
	m.Must(m.Boot(t.Context()))
	if up := m.Sh("cut -d. -f1 /proc/uptime"); len(up) > 2 {
		t.Errorf("the machine did not boot: it is up for %s s", up)
	}
	mount()
	d = m.Daemon(quick)
	after, err := d.Snapshot(t.Context())
	m.Must(err)
	for _, was := range before.Drives {
		now, ok := after.Find(was.ID)
		if !ok {
			t.Errorf("%s (%s) is forgotten", was.ID, was.Serial)
			continue
		}
		if !now.FirstSeen.Equal(was.FirstSeen) || now.Cordoned != was.Cordoned || now.Status != was.Status {
			t.Errorf("%s: known since %v, cordoned %v, %s; before the cut %v, %v, %s", was.Serial,
				now.FirstSeen, now.Cordoned, now.Status, was.FirstSeen, was.Cordoned, was.Status)
		}
	}
	// The drive says that it is well again, having been off: the finding stays on
	// record until it stayed away for long enough. Until its first poll, the daemon shows what it recorded.
	x, _ := d.UntilDrive("NVBAD", "polled again", poll, func(x *drivebay.Drive) error {
		if was := x.Evidence.NVMe.CriticalWarning; was != 0 {
			return fmt.Errorf("its critical warning is %d", was)
		}
		return nil
	})
	if x.Health != drivebay.HealthBad {
		t.Errorf("NVBAD is %s: %s", x.Health, findings(x))
	}
	events, err := d.Events(t.Context(), 0, 0)
	m.Must(err)
	text := fmt.Sprintf("%+v", events)
	for _, want := range []string{"DriveVanished", "HealthChanged"} {
		if !strings.Contains(text, want) {
			t.Errorf("the events from before the cut lack %s: %s", want, text)
		}
	}
}

// TestLabClock: a clock that jumps neither ages evidence nor stops the polls.
func TestLabClock(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVA"), scsi("SDA", 0x5000c500b0000000)}})
	d := m.Daemon(quick)
	for _, jump := range []time.Duration{26 * time.Hour, -50 * time.Hour, 24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			m, d := m.For(t), d.For(t)
			m.Must(m.JumpClock(t.Context(), jump))
			time.Sleep(3 * time.Second) // at least one tick
			for _, id := range []string{"NVA", "SDA"} {
				if x := d.BySerial(id); x.Health != drivebay.HealthGood || x.Status != drivebay.StatusOnline {
					t.Errorf("%s is %s, %s: %s", id, x.Status, x.Health, findings(x))
				}
			}
			// Polls go on at their pace, and a pulled drive is seen.
			was := d.BySerial("NVA").Evidence.At
			d.UntilDrive("NVA", "polled again", poll, func(x *drivebay.Drive) error {
				if x.Evidence.At.Equal(was) {
					return fmt.Errorf("last looked at %v", was)
				}
				return nil
			})
			m.Must(m.Unplug(t.Context(), "SDA"))
			_, took := d.UntilDrive("SDA", "pulled", soon, is(drivebay.StatusOffline))
			t.Logf("pull seen after %v", took)
			m.Must(m.Replug(t.Context(), "SDA"))
			d.UntilDrive("SDA", "back and sound", soon, func(x *drivebay.Drive) error { // what was read while it was away is read again
				if x.Status != drivebay.StatusOnline || x.Health != drivebay.HealthGood {
					return fmt.Errorf("it is %s, %s: %s", x.Status, x.Health, findings(x))
				}
				return nil
			})
		})
	}
}
