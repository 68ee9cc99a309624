package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

var update = flag.Bool("update", false, "write testdata/*.golden")

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// rack is a handful of drives, each with something of its own to show.
func rack() []drivebay.Drive {
	evidence := func(p drivebay.Protocol) *drivebay.Evidence {
		return &drivebay.Evidence{At: now.Add(-3 * time.Minute), Source: "drive", Protocol: p, Verdict: drivebay.VerdictPassed, Temperature: ptr(38), PowerOnHours: ptr(uint64(41234))}
	}
	hdd := drivebay.Drive{
		ID: "naa-5000c500a1b2c3d4", Name: "sda", Type: drivebay.TypeHDD, Transport: drivebay.TransportSATA, Protocol: drivebay.ProtocolATA,
		Identity: drivebay.Identity{Model: "ST4000NM0033", Serial: "Z1Z2AAAA", Firmware: "SN06", WWN: "naa.5000c500a1b2c3d4", Size: 4000787030016, RPM: 7200},
		Slot:     drivebay.Slot{Enclosure: "0:0:8:0", Bay: "Slot 10", Locate: "x", Lit: true, Status: "critical"}, LogicalBlock: 512, PhysBlock: 4096, NUMANode: ptr(1),
		Paths:  []drivebay.Path{{Name: "sda", Dev: "/dev/sda", Address: "0:0:1:0", State: "running"}},
		Status: drivebay.StatusOnline, Health: drivebay.HealthBad, Usage: drivebay.UsageInUse, Temperature: ptr(38), PowerOnHours: ptr(uint64(41234)),
		Content:   drivebay.Content{Kind: drivebay.ContentForeign, Signatures: []drivebay.Signature{{Format: "gpt"}, {Format: "ext4", Partition: "1", Label: "data", UUID: "aa-bb"}}},
		Uses:      []drivebay.Use{{Kind: "partition", Device: "sda1"}, {Kind: "mount", Device: "sda1", What: "/srv"}},
		FirstSeen: now.Add(-400 * time.Hour), LastSeen: now,
		Findings: []drivebay.Finding{
			{Code: "ATAReallocatedSectors", Severity: drivebay.HealthBad, Text: "Reallocated_Sector_Ct 1176, +24 in 7 days", Advice: "Replace it: `drivebay replace DRIVE`.", Since: now.Add(-50 * time.Hour)},
			{Code: "ATAPendingSectors", Severity: drivebay.HealthSuspect, Text: "Current_Pending_Sector 8", Since: now.Add(-time.Hour), Gone: now.Add(-time.Minute)},
		},
		Evidence: evidence(drivebay.ProtocolATA), Kernel: &drivebay.Kernel{At: now, State: "running", IOErrors: ptr(uint64(3)), MediaErrors24h: 2, LastLog: "sda: I/O error, sector 4711"},
	}
	hdd.Evidence.ATA = &drivebay.ATA{SMARTSupported: true, SMARTEnabled: true, ErrorCount: ptr(uint64(7)),
		Attributes: []drivebay.Attribute{
			{ID: 5, Name: "Reallocated_Sector_Ct", Value: 30, Worst: 30, Threshold: ptr(uint8(36)), Prefail: true, FailedNow: true, Raw: 1176, Count: 1176, Text: "1176"},
			{ID: 194, Name: "Temperature_Celsius", Value: 62, Worst: 50, FailedPast: true, Text: "38 (Min/Max 18/50)"},
		},
		Statistics: []drivebay.Statistic{{Page: 1, Offset: 8, Name: "Lifetime Power-On Resets", Value: 41}},
		Errors:     []drivebay.DriveLog{{Number: 7, Hours: 41000, LBA: 4711, Text: "UNC"}},
	}
	hdd.Evidence.SelfTests = []drivebay.SelfTest{{Kind: "short", Result: drivebay.SelfTestFailed, Text: "completed: read failure", Hours: 41200, LBA: ptr(uint64(4711))}}
	hdd.Evidence.Problems = []drivebay.Problem{{Page: "ata-ext-selftest-log", Text: "checksum is wrong"}, {Page: "ata-device-statistics", Text: "not supported by the drive", Expected: true}}

	nvme := drivebay.Drive{
		ID: "eui-0025385b71b0a1b2", Name: "nvme0n1", Type: drivebay.TypeNVMe, Transport: drivebay.TransportNVMe, Protocol: drivebay.ProtocolNVMe,
		Identity: drivebay.Identity{Model: "SAMSUNG MZVL2512", Serial: "S64KNX0R", Firmware: "GXA7", Size: 512110190592}, System: true, LogicalBlock: 512, PhysBlock: 512,
		Uses:   []drivebay.Use{{Kind: "mount", Device: "nvme0n1p2", What: "/"}, {Kind: "swap", Device: "nvme0n1p3"}},
		Status: drivebay.StatusOnline, Health: drivebay.HealthGood, Temperature: ptr(41), Content: drivebay.Content{Kind: drivebay.ContentForeign, Signatures: []drivebay.Signature{{Format: "gpt"}}},
		Wear:     &drivebay.Wear{PercentUsed: 37, DaysLeft: ptr(812.5), ForecastBasis: "3 % in 41 days", TotalWritten: ptr(uint64(123e12)), BytesPerDay: ptr(uint64(42e9))},
		Evidence: evidence(drivebay.ProtocolNVMe), Kernel: &drivebay.Kernel{At: now, State: "live"}, LastSeen: now, FirstSeen: now,
	}
	nvme.Evidence.NVMe = &drivebay.NVMe{AvailableSpare: 100, SpareThreshold: 10, PercentageUsed: 37, DataUnitsWritten: 240e6, PowerOnHours: 41234, WarningTemp: 81, CriticalTemp: 85}

	sas := drivebay.Drive{
		ID: "naa-5000cca2", Name: "sdb", Type: drivebay.TypeHDD, Transport: drivebay.TransportSAS, Protocol: drivebay.ProtocolSCSI,
		Identity: drivebay.Identity{Vendor: "HGST", Model: "HUS726060\x1b[31mRED", Serial: "1EH\xff0001", Size: 6001175126016},
		Slot:     drivebay.Slot{Enclosure: "0:0:8:0", Bay: "Slot 9"}, Status: drivebay.StatusOffline, Cordoned: true,
		Health: drivebay.HealthSuspect, Findings: []drivebay.Finding{{Code: "SCSIGrownDefects", Severity: drivebay.HealthSuspect, Text: "12 grown defects, and a text that goes on for much longer than any screen is wide"}},
		Evidence: evidence(drivebay.ProtocolSCSI), LastSeen: now.Add(-90 * time.Second),
	}
	sas.Evidence.SCSI = &drivebay.SCSI{HasIE: true, GrownDefects: ptr(uint64(12)), ErrorCounters: map[string]drivebay.ErrorCounter{"write": {Corrected: 4, Bytes: 9e12}, "read": {Uncorrected: 1, Bytes: 1e12}}}

	virtio := drivebay.Drive{ID: "path-vda", Name: "vda", IdentityIssue: "it has neither serial nor WWN", Transport: drivebay.TransportVirtio, Status: drivebay.StatusOnline,
		Identity: drivebay.Identity{Size: 1 << 34}, Health: drivebay.HealthGood, Content: drivebay.Content{Kind: drivebay.ContentUnknown, Reason: "permission denied"}}
	hung := drivebay.Drive{ID: "sn-x", Name: "sdaa", Protocol: drivebay.ProtocolATA, Type: drivebay.TypeSSD, Health: drivebay.HealthUnknown, Status: drivebay.StatusOnline,
		Kernel: &drivebay.Kernel{At: now, State: "running", Inflight: 2, Frozen: 12 * time.Second, LaneStuck: 40 * time.Second}}
	return []drivebay.Drive{hdd, nvme, hung, sas, virtio}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it):\ngot\n%s\nwant\n%s", file, got, want)
	}
}

func TestGoldens(t *testing.T) {
	list := Order(rack())
	by := map[string]*drivebay.Drive{}
	for i := range list {
		by[list[i].Name] = &list[i]
	}
	s := Style{Width: 100, Now: now}
	free := Style{Now: now}
	cases := map[string]string{
		"drives":        Drives(list, nil, free, Layout{}),
		"drives-color":  Drives(list, nil, Style{Color: true, Now: now}, Layout{}),
		"drives-narrow": Drives(list, nil, Style{Width: 80, Now: now}, Layout{}),
		"drives-wide":   Drives(list, nil, s, Layout{Wide: true}),
		"drives-none":   Drives(nil, nil, s, Layout{}),
		"show-hdd":      Drive(by["sda"], s),
		"show-nvme":     Drive(by["nvme0n1"], s),
		"smart-ata":     Smart(by["sda"], s),
		"smart-nvme":    Smart(by["nvme0n1"], s),
		"smart-scsi":    Smart(by["sdb"], s),
		"pages":         Pages([]drivebay.RawPage{{Page: "ata-identify", Data: []byte("0123456789abcdefXYZ")}, {Page: "ata-smart-data", Error: "not supported"}}, s),
		"events": Events([]drivebay.Event{
			{Seq: 1, At: now, Kind: drivebay.EventAppeared, Drive: "naa-1", Cause: "seen in bay 7"},
			{Seq: 2, At: now, Kind: drivebay.EventHealth, Drive: "naa-1", From: "GOOD", To: "BAD", Cause: "Reallocated_Sector_Ct\n1176"},
			{Seq: 3, At: now, Kind: "VolumeCreated", Volume: "aaaa", Drive: "naa-1", Cause: "made"},
		}, s),
	}
	for _, name := range []string{"sda", "nvme0n1", "sdaa", "sdb", "vda"} {
		of := s
		if name == "sda" {
			of.Machine.Hardware = &drivebay.Hardware{Vendor: "ACME", Product: "R740", Serial: "ABC123"}
		}
		cases["explain-"+name] = Explain(by[name], of)
	}
	for name, got := range cases {
		t.Run(name, func(t *testing.T) { golden(t, name, got) })
	}
	yaml, err := YAML(rack()[3])
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "yaml", yaml)
}

// Whatever a drive says, its text neither moves a cursor nor breaks a line.
func TestNothingForATerminalToObey(t *testing.T) {
	list := rack()
	evil := "\x1b]0;x\x07\r\n\u202e\x7f\xff"
	for i := range list {
		d := &list[i]
		d.Model, d.Vendor, d.Serial, d.Firmware, d.Slot.Bay, d.IdentityIssue = evil, evil, evil, evil, evil, evil
		d.Findings = []drivebay.Finding{{Code: evil, Text: evil, Advice: evil}}
		d.Content.Signatures = []drivebay.Signature{{Format: evil, Label: evil}}
		d.Uses = []drivebay.Use{{Kind: "mount", What: evil}}
		if d.Evidence != nil {
			d.Evidence.Problems = []drivebay.Problem{{Page: evil, Text: evil}}
		}
		if d.Kernel != nil {
			d.Kernel.LastLog, d.Kernel.OpenError = evil, evil
		}
		for _, text := range []string{Drives(list[i:i+1], nil, Style{}, Layout{Wide: true}), Drive(d, Style{}), Explain(d, Style{}), Smart(d, Style{})} {
			if strings.ContainsAny(text, "\x1b\x07\r\u202e\x7f") || !utf8.ValidString(text) {
				t.Errorf("%s: control characters came through:\n%q", d.Name, text)
			}
		}
		if _, err := YAML(d); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestLinesFitTheScreen(t *testing.T) {
	list := rack()
	for width := 60; width < 200; width += 7 {
		for _, line := range strings.Split(Drives(list, nil, Style{Width: width}, Layout{}), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

func TestNatural(t *testing.T) {
	in := []string{"Slot 1", "Slot 2", "Slot 10", "Slot 10a", "a01", "a1", "b"}
	for i := range in {
		for j := range in {
			got := natural(in[i], in[j])
			if i < j && got > 0 || i > j && got < 0 || i == j && got != 0 {
				t.Errorf("natural(%q, %q) = %d", in[i], in[j], got)
			}
		}
	}
	if kernelOrder("sdz", "sdaa") >= 0 || kernelOrder("nvme2n1", "nvme10n1") >= 0 || kernelOrder("sda", "vda") >= 0 {
		t.Error("kernel names are out of order")
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 4000787030016: "4 TB", 512110190592: "512 GB", 1920383410176: "1.9 TB", 999999: "1 MB", 1<<64 - 1: "18.4 EB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}
