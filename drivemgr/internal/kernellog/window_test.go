package kernellog

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

func TestLinkResets(t *testing.T) {
	for line, want := range map[string]string{"ata3: hard resetting link": "ata3", "ata12.00: soft resetting link": "ata12"} {
		if dev, kind, _, ok := Classify(line); !ok || dev != want || kind != Reset {
			t.Errorf("%q: %q %v %v", line, dev, kind, ok)
		}
	}
	if _, _, _, ok := Classify("ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"); ok {
		t.Error("a link that comes up is an error")
	}
}

// Sectors count once, everything is forgotten in time, and a drive that logs
// without end is bounded.
func TestLogWindow(t *testing.T) {
	var w Window
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) host.LogLine { return host.LogLine{At: now.Add(d), Text: d.String()} }
	for range 3 {
		w.Add(Medium, Error{At: at(0).At, Sector: 4096}, at(0))
	}
	w.Add(Medium, Error{At: at(time.Hour).At, Sector: 8192}, at(time.Hour))
	w.Add(Reset, Error{}, at(time.Hour))
	w.Add(IO, Error{At: at(2 * time.Hour).At}, at(2*time.Hour))
	for _, c := range []struct {
		after                time.Duration
		media, other, resets uint64
	}{{2 * time.Hour, 2, 1, 1}, {2*time.Hour + time.Minute, 2, 1, 0}, {24*time.Hour + time.Minute, 1, 1, 0}, {27 * time.Hour, 0, 0, 0}} {
		k := &drivebay.Kernel{}
		w.Count(k, now.Add(c.after))
		if k.MediaErrors24h != c.media || k.OtherErrors24h != c.other || k.Resets1h != c.resets {
			t.Errorf("after %v: %d, %d, %d; want %+v", c.after, k.MediaErrors24h, k.OtherErrors24h, k.Resets1h, c)
		}
		if (k.LastLog == "") != (c.media+c.other+c.resets == 0) {
			t.Errorf("after %v the last line is %q", c.after, k.LastLog)
		}
	}
	for i := range uint64(5 * maxLogKept) {
		w.Add(Medium, Error{At: now, Sector: i}, at(0))
		w.Add(IO, Error{At: now, Sector: i}, at(0))
	}
	if len(w.sectors) > maxLogKept || len(w.Errors) > maxLogKept {
		t.Errorf("%d sectors, %d errors are kept", len(w.sectors), len(w.Errors))
	}
}

func TestClassifyLog(t *testing.T) {
	rows := []struct {
		line   string
		dev    string
		kind   Kind
		sector uint64
	}{
		// block/blk-core.c, blk_print_req_error(); before 5.16 with the function's name
		{"critical medium error, dev sde, sector 4660 op 0x0:(READ) flags 0x800 phys_seg 1 prio class 2", "sde", Medium, 4660},
		{"blk_update_request: critical medium error, dev sda, sector 976773160 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0", "sda", Medium, 976773160},
		{"print_req_error: I/O error, dev nvme0n1, sector 8", "nvme0n1", IO, 8},
		{"timeout error, dev sdb, sector 1 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2", "sdb", IO, 1},
		{"protection error, dev sdb, sector 1 op 0x0:(READ)", "sdb", IO, 1},
		// fs/buffer.c, buffer_io_error()
		{"Buffer I/O error on dev sda1, logical block 27, lost async page write", "sda1", IO, 27},
		{"Buffer I/O error on dev sda1, logical block 27, async page read", "", 0, 0},
		// drivers/scsi/scsi_error.c, scsi_lib.c, scsi_logging.c
		{"sd 8:0:0:0: Device offlined - not ready after error recovery", "8:0:0:0", Offline, 0},
		{"sd 2:0:0:0: rejecting I/O to offline device", "2:0:0:0", Offline, 0},
		{"scsi 2:0:0:0: rejecting I/O to dead device", "2:0:0:0", Offline, 0},
		{"sd 8:0:0:0: [sde] tag#171 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=31s", "8:0:0:0", Timeout, 0},
		{"sd 8:0:0:0: [sde] tag#181 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s", "", 0, 0},
		{"sd 8:0:0:0: [sde] tag#181 Sense Key : Medium Error [current]", "", 0, 0},
		// drivers/nvme/host/pci.c, core.c
		{"nvme nvme0: I/O 12 QID 3 timeout, aborting", "nvme0", Timeout, 0},
		{"nvme nvme0: I/O tag 12 (100c) opcode 0x2 (Read) QID 3 timeout, aborting req_op:READ(0) size:4096", "nvme0", Timeout, 0},
		{"nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "nvme1", Reset, 0},
		{"nvme nvme1: resetting controller", "nvme1", Reset, 0},
		{"nvme nvme1: Removing after probe failure status: -19", "nvme1", Offline, 0},
		{"nvme nvme1: Disabling device after reset failure: -19", "nvme1", Offline, 0},
		// fs/ext4/super.c, fs/xfs, fs/btrfs/messages.c
		{"EXT4-fs error (device dm-0): trigger_test_error:126: comm init: injected", "dm-0", Corruption, 0},
		{"EXT4-fs (sda1): mounted filesystem with ordered data mode", "", 0, 0},
		{"XFS (sdb1): Metadata corruption detected at xfs_agf_verify+0x1/0x2 [xfs], xfs_agf block 0x1", "sdb1", Corruption, 0},
		{"XFS (sdb1): metadata I/O error in \"xfs_imap_to_bp+0x5c/0xa0\" at daddr 0x40 len 32 error 5", "sdb1", Filesystem, 0},
		{"XFS (sdb1): Metadata I/O Error (0x1) detected at xfs_trans_read_buf_map", "sdb1", Filesystem, 0},
		{"XFS (sdb1): Ending clean mount", "", 0, 0},
		{"BTRFS error (device sdc): bdev /dev/sdc errs: wr 0, rd 1, flush 0, corrupt 0, gen 0", "sdc", Filesystem, 0},
		{"BTRFS error (device sdc): bdev /dev/sdc errs: wr 0, rd 0, flush 0, corrupt 1, gen 0", "sdc", Corruption, 0},
		{"BTRFS critical (device sdc state EA): corrupt leaf", "sdc", Corruption, 0},
		{"BTRFS info (device sdc): using crc32c", "", 0, 0},
		{"", "", 0, 0},
	}
	for _, r := range rows {
		dev, kind, sector, ok := Classify(r.line)
		if dev != r.dev || kind != r.kind || sector != r.sector || ok != (r.kind != 0) {
			t.Errorf("%q: %q %v %d %v", r.line, dev, kind, sector, ok)
		}
	}
}

func FuzzClassifyLog(f *testing.F) {
	f.Add("critical medium error, dev sde, sector 4660 op 0x0:(READ)")
	f.Add("nvme nvme0: I/O 12 QID 3 timeout, aborting")
	f.Add("I/O error, dev sda, sector 99999999999999999999999")
	f.Fuzz(func(t *testing.T, line string) {
		dev, kind, _, ok := Classify(line)
		if ok != (kind != 0) || ok != (dev != "") || !utf8.ValidString(dev) || len(dev) > len(line) {
			t.Errorf("%q: %q %v %v", line, dev, kind, ok)
		}
	})
}

// TestWindowIsStored: what a window holds is the same after it was stored, and a text that cannot be read is an empty one.
func TestWindowIsStored(t *testing.T) {
	var w Window
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := w.Encode(); got != "" {
		t.Errorf("an empty one: %q", got)
	}
	line := host.LogLine{At: now, Text: "the last line"}
	w.Add(IO, Error{At: now.Add(-time.Hour), Sector: 16, Placed: true, Wrote: true}, line)
	w.Add(Medium, Error{At: now, Sector: 24, Placed: true}, line)
	w.Add(Medium, Error{At: now, Sector: 4096, Placed: true}, line)
	w.AddReturn(now)
	w.MarkLeft(now.Add(-time.Hour))
	w.Resolve(&Proof{upTo: w.number}, Proved{places: map[uint64]bool{24 * 512: true}})
	again := Decode(w.Encode())
	if again.Encode() != w.Encode() || again.Returns(now) != 1 {
		t.Errorf("%s\n%s", w.Encode(), again.Encode())
	}
	var was, is drivebay.Kernel
	w.Count(&was, now)
	again.Count(&is, now)
	if is.UnresolvedErrors != 2 || is.MediaErrors24h != 2 || len(is.BadSectors) != 1 || is.LastLog != "the last line" || is.UnresolvedErrors != was.UnresolvedErrors || is.OtherErrors24h != was.OtherErrors24h {
		t.Errorf("%+v, %+v", was, is)
	}
	for _, text := range []string{"{", "[]", "7"} {
		if w := Decode(text); w.Encode() != "" {
			t.Errorf("%q: %q", text, w.Encode())
		}
	}
}
