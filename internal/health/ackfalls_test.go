package health

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestAcknowledgedIsNotTheNext: what an operator accepted hides no later fault of the same rule. A number of now, or of a window,
// falls when its cause is gone; the next fault is another one, though its number is no larger than the accepted one.
func TestAcknowledgedIsNotTheNext(t *testing.T) {
	th := Default()
	logged := func(hours ...uint64) func(Input) Input {
		return func(in Input) Input {
			now := uint64(20_000)
			in.Evidence.PowerOnHours = &now
			for _, h := range hours {
				in.Evidence.ATA.Errors = append(in.Evidence.ATA.Errors, drivebay.DriveLog{Kind: drivebay.LogUncorrectable, Hours: h, Text: "uncorrectable data"})
			}
			return in
		}
	}
	counted := func(n uint64) drivebay.Kernel {
		return drivebay.Kernel{Filesystems: []drivebay.FSError{{Device: "sda1", FS: "ext4", Errors: n}}}
	}
	for name, c := range map[string]struct {
		first, less, then Input
	}{
		"a bad sector":                    {kernel(drivebay.Kernel{MediaErrors24h: 3}), kernel(drivebay.Kernel{}), kernel(drivebay.Kernel{MediaErrors24h: 1})},
		"a bad sector, of another day":    {kernel(drivebay.Kernel{MediaErrors24h: 3}), kernel(drivebay.Kernel{MediaErrors24h: 1}), kernel(drivebay.Kernel{MediaErrors24h: 2})},
		"a filesystem that was repaired":  {kernel(counted(5)), kernel(counted(0)), kernel(counted(3))},
		"the error log":                   {logged(19_950)(hdd()), logged(19_000)(hdd()), logged(19_999, 19_000)(hdd())},
		"sectors that were written again": {hdd(attr(197, "Current_Pending_Sector", 8)), hdd(attr(197, "Current_Pending_Sector", 0)), hdd(attr(197, "Current_Pending_Sector", 8))},
	} {
		t.Run(name, func(t *testing.T) {
			mem, now := drivebay.Memory{}, t0
			settle := func(in Input) drivebay.Health {
				now = now.Add(48 * time.Hour)
				in.Now = now
				if in.Evidence != nil {
					in.Evidence.At = now
				}
				mem = Settle(mem, Assess(in, th), now, th)
				return drivebay.WorstOf(mem.Findings)
			}
			if got := settle(c.first); got != sus {
				t.Fatalf("before it is accepted: %v %+v", got, mem)
			}
			var err error
			if mem, err = Acknowledge(mem, ""); err != nil {
				t.Fatal(err)
			}
			if got := settle(c.first); got != good {
				t.Fatalf("accepted, and still there: %v %+v", got, mem)
			}
			if got := settle(c.less); got != good {
				t.Fatalf("less: %v %+v", got, mem)
			}
			if got := settle(c.then); got != sus {
				t.Errorf("the next fault: %v, hidden by what was accepted: %+v", got, mem.Acked)
			}
		})
	}
}

// TestAcknowledgedFilesystem: what was accepted of one filesystem of a drive hides no error of another one.
func TestAcknowledgedFilesystem(t *testing.T) {
	fs := func(errors ...uint64) Input {
		k := drivebay.Kernel{}
		for i, n := range errors {
			k.Filesystems = append(k.Filesystems, drivebay.FSError{Device: []string{"sda1", "sda2"}[i], FS: "ext4", Errors: n})
		}
		return kernel(k)
	}
	mem, err := Acknowledge(Settle(drivebay.Memory{}, Assess(fs(5, 0), Default()), t0, Default()), "FilesystemErrors")
	if err != nil {
		t.Fatal(err)
	}
	mem = Settle(mem, Assess(fs(5, 3), Default()), t0.Add(hour), Default())
	if got := drivebay.WorstOf(mem.Findings); got != sus {
		t.Errorf("%v: the errors of the other filesystem are hidden: %+v", got, mem)
	}
}

// TestAcknowledgedInSilence: a drive that does not answer for a while does not take back what was accepted.
func TestAcknowledgedInSilence(t *testing.T) {
	pendingNow := []drivebay.Finding{find("ATAPendingSectors", sus, 3)}
	mem, err := Acknowledge(Settle(drivebay.Memory{}, pendingNow, t0, Default()), "")
	if err != nil {
		t.Fatal(err)
	}
	mem = Settle(mem, []drivebay.Finding{find("EvidenceMissing", dunno, 0)}, t0.Add(hour), Default())
	mem = Settle(mem, pendingNow, t0.Add(2*hour), Default())
	if got := drivebay.WorstOf(mem.Findings); got != good {
		t.Errorf("%v: %+v", got, mem)
	}
}
