//go:build lab

package suite

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/emul"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabReplace: one command of the operator leads an NVMe drive out and its successor
// in. Meanwhile the wrong sled is pulled, and afterwards the old drive is put in again.
func TestLabReplace(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVOLD"), nvme("NVWRONG")}})
	d := m.Daemon(quick)
	m.Must(d.Claim(t.Context(), "NVOLD", true))
	old := d.BySerial("NVOLD")

	var out said
	cmd, err := m.Guest.Start(t.Context(), agent.Command{Argv: []string{"drivebay", "replace", old.Slot.Bay, "--yes", "--why", "it is old"}}, agent.Streams{Out: &out, Err: &out})
	m.Must(err)
	t.Cleanup(func() { t.Logf("drivebay replace said:\n%s", &out) })
	out.until(t, "SAFE TO PULL: bay "+old.Slot.Bay)
	d.UntilDrive("NVOLD", "taken out", soon, leads(drivebay.UsageRemoved, drivebay.StatusOffline))
	m.Sh("! test -e /sys/bus/pci/devices/%s", old.Paths[0].Address)

	m.Must(m.Unplug(t.Context(), "NVWRONG"))
	out.until(t, "wrong drive pulled: put the drive with serial NVWRONG back into bay")
	m.Must(m.Replug(t.Context(), "NVWRONG"))
	d.UntilDrive("NVWRONG", "put back", soon, leads(drivebay.UsageInUse, drivebay.StatusOnline))

	m.Must(m.Unplug(t.Context(), "NVOLD")) // the hand at the right one
	m.Must(m.PlugInto(t.Context(), nvme("NVNEW"), "NVOLD"))
	began := time.Now()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("drivebay replace: %v", err)
	}
	t.Logf("the successor was in use after %v", time.Since(began).Round(time.Millisecond))
	next := d.BySerial("NVNEW")
	if next.Slot.Bay != old.Slot.Bay || next.Claim == nil || next.Usage != drivebay.UsageInUse || next.Succeeds == nil || next.Succeeds.Of != old.ID {
		t.Errorf("the successor: bay %s, claim %v, %v, %+v", next.Slot.Bay, next.Claim, next.Usage, next.Succeeds)
	}

	m.Must(m.Replug(t.Context(), "NVOLD"))
	back, _ := d.UntilDrive("NVOLD", "back", soon, leads(drivebay.UsageRemoved, drivebay.StatusOnline))
	if back.ID != old.ID || len(back.Refusals()) == 0 {
		t.Errorf("it is %s, refused for %q", back.ID, back.Refusals())
	}
	if told := m.Sh("drivebay events --drive %s", old.ID); !strings.Contains(told, string(drivebay.EventQuarantined)) {
		t.Errorf("nothing is told of its return:\n%s", told)
	}
}

// leads wants a drive to be somewhere on its way.
func leads(u drivebay.Usage, s drivebay.Status) func(*drivebay.Drive) error {
	return func(d *drivebay.Drive) error {
		if d.Usage != u || d.Status != s {
			return fmt.Errorf("it is %v and %v, want %v and %v: %+v", d.Usage, d.Status, u, s, d.Leaving)
		}
		return nil
	}
}

// said is what a program in the guest has said so far.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *said) until(t *testing.T, words string) {
	t.Helper()
	for end := time.Now().Add(2 * soon); !strings.Contains(s.String(), words); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q is not said:\n%s", words, s)
		}
	}
}

// TestLabReplaceFaultLight: the fault light of a SES bay is the kernel's file beside
// "locate", and what is written there the enclosure shows (drivers/scsi/ses.c,
// ses_set_fault).
func TestLabReplaceFaultLight(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	e := m.Emulate(emul.Spec{Enclosures: []emul.Enclosure{{Name: "shelf", LogicalID: 0x5000c500e0000000, Slots: []emul.Slot{{Name: "Slot 01"}, {Name: "Slot 02"}}}},
		Disks: []emul.Disk{disk("DISK", 0x5000c500d0000000)}})
	d := m.Daemon(quick)
	bay := func(s *drivebay.Snapshot) *drivebay.Bay {
		b, ok := s.FindBay("Slot 02")
		if !ok {
			t.Fatalf("bays %+v", s.Bays)
		}
		return b
	}
	s, err := d.Snapshot(t.Context())
	m.Must(err)
	file := bay(s).Fault
	for _, on := range []bool{true, false} {
		m.Sh("echo %d >'/%s'", map[bool]int{true: 1}[on], file)
		for _, slot := range e.State("shelf").Shelf.Slots {
			if slot.Fault != (on && slot.Name == "Slot 02") {
				t.Errorf("switched %v, the fault light of %s is %v", on, slot.Name, slot.Fault)
			}
		}
		m.Must(d.Refresh(t.Context()))
		d.Until("the fault light is shown", poll, func(s *drivebay.Snapshot) error {
			if b := bay(s); b.FaultLit != on || b.Lit {
				return fmt.Errorf("bay %+v", b)
			}
			return nil
		})
	}
}
