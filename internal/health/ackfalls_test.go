package health

import (
	"slices"
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
		"requests that failed":            {kernel(drivebay.Kernel{OtherErrors24h: 100}), kernel(drivebay.Kernel{OtherErrors24h: 20}), kernel(drivebay.Kernel{OtherErrors24h: 90})},
		"resets":                          {kernel(drivebay.Kernel{Resets1h: 50}), kernel(drivebay.Kernel{Resets1h: 20}), kernel(drivebay.Kernel{Resets1h: 40})},
		"a filesystem that was repaired":  {kernel(counted(5)), kernel(counted(0)), kernel(counted(3))},
		"the error log":                   {logged(19_950)(hdd()), logged(19_000)(hdd()), logged(19_999, 19_000)(hdd())},
		"sectors that were written again": {hdd(attr(197, "Current_Pending_Sector", 8)), hdd(attr(197, "Current_Pending_Sector", 0)), hdd(attr(197, "Current_Pending_Sector", 8))},
	} {
		t.Run(name, func(t *testing.T) {
			mem, now := drivebay.Memory{}, t0
			settle := func(in Input) drivebay.Health {
				for range 2 { // as many rounds as any rule requires
					now = now.Add(24 * time.Hour)
					in.Now = now
					if in.Evidence != nil {
						in.Evidence.At = now
					}
					mem = Settle(mem, Assess(in, th), now, th)
				}
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

// TestAcknowledgedHeat: an accepted temperature goes up and down below the accepted one, and is no other fault.
func TestAcknowledgedHeat(t *testing.T) {
	for _, code := range []string{"ATAHeat", "NVMeHeat", "SCSIHeat"} {
		mem, err := Acknowledge(Settle(drivebay.Memory{}, []drivebay.Finding{find(code, sus, 85)}, t0, Default()), code)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			celsius uint64
			want    drivebay.Health
		}{{80, good}, {85, good}, {86, sus}} {
			mem = Settle(mem, []drivebay.Finding{find(code, sus, c.celsius)}, t0.Add(time.Duration(i+1)*hour), Default())
			if got := drivebay.WorstOf(mem.Findings); got != c.want {
				t.Errorf("%s at %d °C: %v, want %v", code, c.celsius, got, c.want)
			}
		}
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

// TestAcknowledgedIsNotAnotherFault: where the level says which fault was found, an accepted one hides no other, with a higher
// code or a lower one, also after it was gone.
func TestAcknowledgedIsNotAnotherFault(t *testing.T) {
	warns := func(ascq uint8) Input {
		return Input{Type: drivebay.TypeHDD, Protocol: drivebay.ProtocolSCSI, Evidence: &drivebay.Evidence{At: t0, SCSI: &drivebay.SCSI{HasIE: true, ASC: 0x0B, ASCQ: ascq}}}
	}
	critical := func(bits uint8) Input {
		return Input{Type: drivebay.TypeNVMe, Protocol: drivebay.ProtocolNVMe, Evidence: &drivebay.Evidence{At: t0, NVMe: &drivebay.NVMe{CriticalWarning: bits, TemperatureKelvin: 300, AvailableSpare: 100}}}
	}
	old := func(past bool, ids ...uint8) Input {
		in := hdd()
		for _, id := range ids {
			in.Evidence.ATA.Attributes = append(in.Evidence.ATA.Attributes, drivebay.Attribute{ID: id, Name: "A", Value: 1, Worst: 1, Threshold: p(uint8(5)), FailedNow: !past, FailedPast: true, Prefail: past})
		}
		return in
	}
	for name, c := range map[string]struct {
		first, then Input
		want        drivebay.Health
	}{
		"a lower SCSI warning":               {warns(5), warns(3), sus},
		"a higher SCSI warning":              {warns(3), warns(5), sus},
		"a warning beside the temperature":   {warns(1), warns(0), sus},
		"the same warning":                   {warns(5), warns(5), good},
		"a lower bit of NVMe":                {critical(0x20), critical(0x10), sus},
		"the same bit, and heat before":      {critical(0x22), critical(0x20), good},
		"one of two accepted bits":           {critical(0x30), critical(0x10), good},
		"another advisory attribute":         {old(false, 200), old(false, 201), sus},
		"one of two advisory attributes":     {old(false, 200, 201), old(false, 201), good},
		"the same, in another order":         {old(false, 200, 201), old(false, 201, 200), good},
		"one more attribute in the past":     {old(true, 1), old(true, 1, 7), sus},
		"an attribute in place of another":   {old(true, 1), old(true, 7), sus},
		"more attributes than a level names": {old(false, 201), old(false, 202, 203, 204, 205, 206, 207, 208, 209, 210), sus},
	} {
		for _, gone := range []bool{false, true} {
			mem, err := Acknowledge(Settle(drivebay.Memory{}, Assess(c.first, Default()), t0, Default()), "")
			if err != nil {
				t.Fatal(name, err)
			}
			now := t0
			if gone {
				now = now.AddDate(0, 0, 2)
				mem = Settle(mem, nil, now, Default())
			}
			now = now.AddDate(0, 0, 2)
			mem = Settle(mem, Assess(c.then, Default()), now, Default())
			i := slices.IndexFunc(mem.Findings, func(f drivebay.Finding) bool { return f.Code != "NVMeHeat" })
			if is := i >= 0; is != (c.want == sus) {
				t.Errorf("%s, gone between: %v: %+v, accepted %v", name, gone, mem.Findings, mem.Acked)
			}
		}
	}
}
