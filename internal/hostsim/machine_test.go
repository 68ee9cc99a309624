package hostsim_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// small is a machine with one drive of each kind, in bays where they have one.
const small = `
machine: small
enclosures:
  - {name: flash, kind: pci, bays: 2}
  - {name: disks, kind: ses, bays: 6, first: 2}
drives:
  - {bays: "0", kind: nvme, serial: NVME0, age: {power_on_hours: 1000, percentage_used: 3, written: 512GB, media_errors: 2, temperature: 40}}
  - {bays: "2", kind: sata-hdd, serial: HDD0, age: {power_on_hours: 2000, reallocated: 5, pending: 1, uncorrectable: 3, temperature: 31}}
  - {bays: "3", kind: sata-ssd, serial: SSD0, age: {power_on_hours: 3000, percentage_used: 20, written: 1TB, crc_errors: 7}}
  - {bays: "4", kind: sas-hdd, serial: SAS0, age: {power_on_hours: 4000, reallocated: 6, pending: 2, uncorrectable: 1}}
  - {bays: "5", kind: sas-ssd, serial: SASSSD0, age: {power_on_hours: 5000, percentage_used: 30}}
  - {count: 1, kind: virtio, serial: VIRT0, system: true}
  - {count: 1, kind: usb, serial: USB0, content: ext4}
`

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func load(t testing.TB, text string) (*hostsim.Machine, *hostsim.ManualClock) {
	t.Helper()
	clock := hostsim.NewManualClock(start)
	m, err := hostsim.Load([]byte(text), hostsim.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, clock
}

func inject(t testing.TB, m *hostsim.Machine, bay, fault string, args ...string) {
	t.Helper()
	f := hostsim.Fault{Bay: bay, Fault: fault, Args: hostsim.Args{}}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		f.Args[k] = v
	}
	if err := m.Inject(f); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, m *hostsim.Machine, dev string) host.OpenDrive {
	t.Helper()
	d, err := m.OpenDrive(context.Background(), dev)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func read(t testing.TB, m *hostsim.Machine, name string) string {
	t.Helper()
	b, err := m.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestLoadRefuses(t *testing.T) {
	bay := "enclosures: [{name: a, kind: ses, bays: 2}]\ndrives:\n  - "
	for text, want := range map[string]string{
		"":                                       "empty",
		"machine: a\nnonsense: 1\n":              "line 2: field nonsense not found",
		bay + "{bays: 0, kind: sas-hdd, rpm: 1}": "line 3: field rpm not found",
		"drives: [{count: 1, kind: floppy}]":     `drives[0]: kind "floppy": want one of nvme`,
		"drives: [{count: 1001, kind: nvme}]":    "want 1 to 1000 drives",
		"drives: [{kind: nvme}]":                 "drives[0]: no drives",
		"drives: [{kind: nvme, bays: 1}]":        "drives[0]: bay 1: no enclosure",
		bay + "{bays: 1, kind: nvme}":            "bay 1: no enclosure has such a bay for a nvme",
		bay + "{bays: 0-1, kind: sas-hdd}\n  - {bays: 1, kind: sas-hdd}":                                 "drives[1]: bay 1 of a: there is a drive in it already",
		bay + "{bays: 9-1, kind: sas-hdd}":                                                               `bays "9-1"`,
		bay + "{bays: 0, count: 1, kind: sas-hdd}":                                                       "both bays and count",
		"drives: [{count: 1, kind: nvme, size: 5 parsecs}]":                                              "size",
		"drives: [{count: 1, kind: nvme, content: cheese}]":                                              `content "cheese": want one of blank`,
		"drives: [{count: 1, kind: sata-ssd, paths: 2}]":                                                 "at most 1",
		"drives: [{count: 1, kind: nvme, block: 520}]":                                                   "block 520",
		"drives: [{count: 1, kind: nvme, age: {percentage_used: 256}}]":                                  "percentage_used 256",
		"drives: [{count: 3, kind: nvme, system: true}]":                                                 "3 system drives",
		"enclosures: [{name: a, kind: cupboard, bays: 2}]":                                               `kind "cupboard"`,
		"enclosures: [{name: a, kind: ses, bays: 0}]":                                                    "0 bays",
		bay + "{bays: 0, kind: sas-hdd}\nscript: [{after: 1s, bay: 0, fault: explode}]":                  `script[0]: fault "explode"`,
		bay + "{bays: 0, kind: sas-hdd}\nscript: [{after: 1s, bay: 1, fault: vanish}]":                   `no drive is or was in bay "1"`,
		bay + "{bays: 0, kind: sas-hdd}\nscript: [{after: 1s, bay: 0, fault: vanish, args: {speed: 9}}]": `argument "speed"`,
		bay + "{bays: 0, kind: sas-hdd}\n---\nmachine: b\n":                                              "more than one YAML document",
	} {
		m, err := hostsim.Load([]byte(text))
		if err == nil {
			m.Close()
			t.Errorf("%q was taken", text)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestLights(t *testing.T) {
	m, _ := load(t, small)
	for _, light := range []string{"sys/class/enclosure/0:0:200:0/Slot 02/locate", "sys/class/enclosure/0:0:200:0/Slot 07/fault", "sys/bus/pci/slots/1/attention"} {
		for _, v := range []string{"1", "0"} {
			if err := m.WriteFile(light, []byte(v+"\n")); err != nil {
				t.Fatal(err)
			}
			if got := read(t, m, light); got != v {
				t.Errorf("%s reads %q after %s", light, got, v)
			}
		}
		if err := m.WriteFile(light, []byte("blink")); err == nil {
			t.Errorf("%s took nonsense", light)
		}
	}
	if err := m.WriteFile("sys/block/sda/size", []byte("1")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("writing a size: %v", err)
	}
	if got := m.Stats().Writes; got != 9 {
		t.Errorf("%d writes were counted, want 9", got)
	}
}

func TestMirror(t *testing.T) {
	m, err := hostsim.New(hostsim.Generate(4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	halves := func() string {
		names, err := m.ReadDir("sys/block/md0/slaves")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(names, " ") + ", degraded " + read(t, m, "sys/block/md0/md/degraded")
	}
	if got := halves(); got != "nvme0n1p2 nvme1n1p2, degraded 0" {
		t.Errorf("the mirror has %s", got)
	}
	if at, err := m.Resolve("sys/block/nvme1n1/nvme1n1p2/holders/md0"); err != nil || at != "sys/devices/virtual/block/md0" {
		t.Errorf("holder is %q, %v", at, err)
	}
	if err := m.Inject(hostsim.Fault{Drive: "nvme1n1", Fault: "vanish"}); err != nil {
		t.Fatal(err)
	}
	if got := halves(); got != "nvme0n1p2, degraded 1" {
		t.Errorf("half the mirror is %s", got)
	}
}

// TestDualPath: two block devices with one name each for SAS, a head and two
// hidden paths for NVMe.
func TestDualPath(t *testing.T) {
	m, _ := load(t, `
enclosures: [{name: a, kind: pci, bays: 1}, {name: b, kind: ses, bays: 1, first: 1}]
drives:
  - {bays: "0", kind: nvme, paths: 2}
  - {bays: "1", kind: sas-hdd, paths: 2}`)
	names, err := m.ReadDir("sys/block")
	if got := strings.Join(names, " "); err != nil || got != "nvme0c0n1 nvme0c1n1 nvme0n1 sda sdb" {
		t.Fatalf("block devices: %s, %v", got, err)
	}
	if a, b := read(t, m, "sys/block/sda/device/wwid"), read(t, m, "sys/block/sdb/device/wwid"); a != b || a == "" {
		t.Errorf("the two paths are called %q and %q", a, b)
	}
	if a, b := read(t, m, "sys/block/sda/device/sas_address"), read(t, m, "sys/block/sdb/device/sas_address"); a == b {
		t.Errorf("both ports are called %q", a)
	}
	if at, _ := m.Resolve("sys/block/nvme0n1"); !strings.HasPrefix(at, "sys/devices/virtual/nvme-subsystem/") {
		t.Errorf("the head is at %s", at)
	}
}

func TestRunIsCountedAndRefused(t *testing.T) {
	m, _ := load(t, small)
	if _, err := m.Run(context.Background(), "lvs", "-a"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "lvs is not installed") {
		t.Errorf("Run: %v", err)
	}
	if got := m.Stats().Runs; got != 1 {
		t.Errorf("%d runs were counted, want 1", got)
	}
}

func BenchmarkReadFile(b *testing.B) {
	m, err := hostsim.New(hostsim.Generate(100))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	for b.Loop() {
		if _, err := m.ReadFile("sys/class/block/sdz/queue/rotational"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	m, err := hostsim.New(hostsim.Generate(100))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	for b.Loop() {
		if _, err := m.Resolve("sys/block/sdz/device"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew100(b *testing.B) {
	for b.Loop() {
		m, err := hostsim.New(hostsim.Generate(100))
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}

// TestScript plays a script on a clock of its own.
func TestScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := hostsim.Load([]byte(small + `
script:
  - {after: 2m, bay: 2, fault: return}
  - {after: 1m, bay: 2, fault: vanish}
  - {after: 3m, bay: 0, fault: uevent-storm, args: {rate: 100, seconds: 2}}
`))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		events, err := m.Uevents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		go func() {
			for e := range events {
				if e.Subsystem == "block" {
					counts[e.Action]++
				}
			}
		}()
		for minute, present := range []bool{true, false, true} {
			synctest.Wait()
			if _, err := m.Resolve("sys/block/sda"); (err == nil) != present {
				t.Errorf("after %d minutes: %v", minute, err)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if counts["add"] != 1 || counts["remove"] != 1 || counts["change"] != 200 {
			t.Errorf("uevents: %v, want one add, one remove, 200 changes", counts)
		}
	})
}

// TestFlicker: entries that vanish while they are read are errors like any other.
func TestFlicker(t *testing.T) {
	m, _ := load(t, small)
	inject(t, m, "2", "sysfs-flicker")
	lost := 0
	for range 30 {
		if _, err := m.ReadFile("sys/block/sda/size"); errors.Is(err, fs.ErrNotExist) {
			lost++
		}
	}
	if lost != 10 {
		t.Errorf("%d of 30 reads found nothing, want 10", lost)
	}
	if _, err := m.ReadFile("sys/block/sdb/size"); err != nil {
		t.Errorf("another drive: %v", err)
	}
}
