package drivemgr

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

func TestKernelLogReachesItsDrive(t *testing.T) {
	sata := &drivebay.Drive{Name: "sdc", Paths: []drivebay.Path{{Name: "sdc", Address: "1:0:0:0", SysPath: "sys/devices/pci0000:00/0000:00:05.0/ata1/host1/target1:0:0/1:0:0:0/block/sdc"}},
		Uses: []drivebay.Use{{Kind: "lvm", Device: "dm-3"}}}
	nvme := &drivebay.Drive{Name: "nvme0n1", Paths: []drivebay.Path{{Name: "nvme0c1n1", Address: "0000:04:00.0", SysPath: "sys/devices/pci0000:00/0000:04:00.0/nvme/nvme1/nvme0c1n1"}}}
	for dev, want := range map[string][2]bool{
		"sdc": {true, false}, "1:0:0:0": {true, false}, "ata1": {true, false}, "dm-3": {true, false}, "ata11": {false, false},
		"nvme0n1": {false, true}, "nvme0c1n1": {false, true}, "nvme1": {false, true}, "0000:04:00.0": {false, true}, "nvme0": {false, false}, "": {false, false},
	} {
		if got := [2]bool{speaksOf(dev, sata), speaksOf(dev, nvme)}; got != want {
			t.Errorf("%q speaks of the SATA drive: %v, of the NVMe drive: %v", dev, got[0], got[1])
		}
	}
}

func TestLinkResets(t *testing.T) {
	for line, want := range map[string]string{"ata3: hard resetting link": "ata3", "ata12.00: soft resetting link": "ata12"} {
		if dev, kind, _, ok := ClassifyLog(line); !ok || dev != want || kind != LogReset {
			t.Errorf("%q: %q %v %v", line, dev, kind, ok)
		}
	}
	if _, _, _, ok := ClassifyLog("ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"); ok {
		t.Error("a link that comes up is an error")
	}
}

// Sectors count once, everything is forgotten in time, and a drive that logs
// without end is bounded.
func TestLogWindow(t *testing.T) {
	var w logWindow
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) host.LogLine { return host.LogLine{At: now.Add(d), Text: d.String()} }
	for range 3 {
		w.add(LogMedium, logError{at: at(0).At, sector: 4096}, at(0))
	}
	w.add(LogMedium, logError{at: at(time.Hour).At, sector: 8192}, at(time.Hour))
	w.add(LogReset, logError{}, at(time.Hour))
	w.add(LogIO, logError{at: at(2 * time.Hour).At}, at(2*time.Hour))
	for _, c := range []struct {
		after                time.Duration
		media, other, resets uint64
	}{{2 * time.Hour, 2, 1, 1}, {2*time.Hour + time.Minute, 2, 1, 0}, {24*time.Hour + time.Minute, 1, 1, 0}, {27 * time.Hour, 0, 0, 0}} {
		k := &drivebay.Kernel{}
		w.count(k, now.Add(c.after))
		if k.MediaErrors24h != c.media || k.OtherErrors24h != c.other || k.Resets1h != c.resets {
			t.Errorf("after %v: %d, %d, %d; want %+v", c.after, k.MediaErrors24h, k.OtherErrors24h, k.Resets1h, c)
		}
		if (k.LastLog == "") != (c.media+c.other+c.resets == 0) {
			t.Errorf("after %v the last line is %q", c.after, k.LastLog)
		}
	}
	for i := range uint64(5 * maxLogKept) {
		w.add(LogMedium, logError{at: now, sector: i}, at(0))
		w.add(LogIO, logError{at: now, sector: i}, at(0))
	}
	if len(w.sectors) > maxLogKept || len(w.errors) > maxLogKept {
		t.Errorf("%d sectors, %d errors are kept", len(w.sectors), len(w.errors))
	}
}
