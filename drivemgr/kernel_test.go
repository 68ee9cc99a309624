package drivemgr

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

func TestReadKernel(t *testing.T) {
	w := tree{}
	stat := "100 0 800 5 10 0 80 5 0 40 50 3 0 24 1 4 2"
	at := w.sas(1, 1, "sda", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001", "ioerr_cnt": "0x1a\n", "iodone_cnt": "0xff\n", "iotmo_cnt": "0x2\n", "state": "offline\n"})
	b := w.sas(2, 1, "sdb", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001", "ioerr_cnt": "0x6\n", "state": "running\n"})
	w.partition(at, "sda1", "8:1")
	w[at+"/stat"], w[at+"/inflight"] = stat+"\n", "       1        2\n"
	w[b+"/stat"], w[b+"/inflight"] = "1 0 8 0 0 0 0 0\n", "0 0\n" // a kernel before 4.18
	w["sys/fs/ext4/sda1/errors_count"], w["sys/fs/ext4/sda1/warning_count"] = "3\n", "1\n"
	_, drives := w.observe(t, InventoryOptions{}, mount("8:1", "/data", "ext4", "/dev/sda1"))
	d, m := drives["sda"], w.machine(t)

	at0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := ReadKernel(m, &d, nil, at0)
	if k.Completed != 100+10+3+4+1 || k.Inflight != 3 || k.State != "running" || k.SizeZero || k.Frozen != 0 {
		t.Errorf("%+v", k)
	}
	if k.IOErrors == nil || *k.IOErrors != 0x20 || k.IODone == nil || *k.IODone != 0xff || k.IOTimeouts == nil || *k.IOTimeouts != 2 {
		t.Errorf("counters: %v %v %v", k.IOErrors, k.IODone, k.IOTimeouts)
	}
	if fs, want := fsErrors(m, &d), (drivebay.FSError{Device: "sda1", FS: "ext4", Errors: 3, Warnings: 1}); len(fs) != 1 || fs[0] != want {
		t.Errorf("filesystems: %+v", fs)
	}

	frozen := func(prev drivebay.Kernel) time.Duration { return ReadKernel(m, &d, &prev, at0.Add(time.Second)).Frozen }
	for name, r := range map[string]struct {
		prev drivebay.Kernel
		want time.Duration
	}{
		"nothing came back":         {drivebay.Kernel{At: at0, Completed: k.Completed, Inflight: 1, Frozen: 4 * time.Second}, 5 * time.Second},
		"something came back":       {drivebay.Kernel{At: at0, Completed: k.Completed - 1, Inflight: 3, Frozen: 4 * time.Second}, 0},
		"nothing was asked before":  {drivebay.Kernel{At: at0, Completed: k.Completed}, 0},
		"the counters began afresh": {drivebay.Kernel{At: at0, Completed: k.Completed + 1000, Inflight: 3}, 0},
	} {
		if got := frozen(r.prev); got != r.want {
			t.Errorf("%s: frozen for %v, want %v", name, got, r.want)
		}
	}
	w[at+"/inflight"], w[at+"/size"] = "0 0\n", "0\n"
	m = w.machine(t)
	if k := ReadKernel(m, &d, &drivebay.Kernel{At: at0, Completed: k.Completed, Inflight: 3, Frozen: time.Minute}, at0.Add(time.Second)); k.Frozen != 0 || !k.SizeZero || k.Zero != 0 {
		t.Errorf("idle: frozen for %v, size zero %v for %v", k.Frozen, k.SizeZero, k.Zero)
	}
	if k := ReadKernel(m, &d, &drivebay.Kernel{At: at0, SizeZero: true, Zero: 3 * time.Second}, at0.Add(2*time.Second)); k.Zero != 5*time.Second {
		t.Errorf("at 0 bytes for %v, want 5 s", k.Zero)
	}
	empty := ReadKernel(tree{}.machine(t), &d, nil, at0)
	if empty.IOErrors != nil || empty.State != "" || empty.SizeZero || len(fsErrors(tree{}.machine(t), &d)) != 0 {
		t.Errorf("of a machine without the drive: %+v", empty)
	}
}

func TestClassifyLog(t *testing.T) {
	rows := []struct {
		line   string
		dev    string
		kind   LogKind
		sector uint64
	}{
		// block/blk-core.c, blk_print_req_error(); before 5.16 with the function's name
		{"critical medium error, dev sde, sector 4660 op 0x0:(READ) flags 0x800 phys_seg 1 prio class 2", "sde", LogMedium, 4660},
		{"blk_update_request: critical medium error, dev sda, sector 976773160 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0", "sda", LogMedium, 976773160},
		{"print_req_error: I/O error, dev nvme0n1, sector 8", "nvme0n1", LogIO, 8},
		{"timeout error, dev sdb, sector 1 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2", "sdb", LogIO, 1},
		{"protection error, dev sdb, sector 1 op 0x0:(READ)", "sdb", LogIO, 1},
		// fs/buffer.c, buffer_io_error()
		{"Buffer I/O error on dev sda1, logical block 27, lost async page write", "sda1", LogIO, 27},
		{"Buffer I/O error on dev sda1, logical block 27, async page read", "", 0, 0},
		// drivers/scsi/scsi_error.c, scsi_lib.c, scsi_logging.c
		{"sd 8:0:0:0: Device offlined - not ready after error recovery", "8:0:0:0", LogOffline, 0},
		{"sd 2:0:0:0: rejecting I/O to offline device", "2:0:0:0", LogOffline, 0},
		{"scsi 2:0:0:0: rejecting I/O to dead device", "2:0:0:0", LogOffline, 0},
		{"sd 8:0:0:0: [sde] tag#171 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=31s", "8:0:0:0", LogTimeout, 0},
		{"sd 8:0:0:0: [sde] tag#181 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s", "", 0, 0},
		{"sd 8:0:0:0: [sde] tag#181 Sense Key : Medium Error [current]", "", 0, 0},
		// drivers/nvme/host/pci.c, core.c
		{"nvme nvme0: I/O 12 QID 3 timeout, aborting", "nvme0", LogTimeout, 0},
		{"nvme nvme0: I/O tag 12 (100c) opcode 0x2 (Read) QID 3 timeout, aborting req_op:READ(0) size:4096", "nvme0", LogTimeout, 0},
		{"nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "nvme1", LogReset, 0},
		{"nvme nvme1: resetting controller", "nvme1", LogReset, 0},
		{"nvme nvme1: Removing after probe failure status: -19", "nvme1", LogOffline, 0},
		{"nvme nvme1: Disabling device after reset failure: -19", "nvme1", LogOffline, 0},
		// fs/ext4/super.c, fs/xfs, fs/btrfs/messages.c
		{"EXT4-fs error (device dm-0): trigger_test_error:126: comm init: injected", "dm-0", LogFilesystem, 0},
		{"EXT4-fs (sda1): mounted filesystem with ordered data mode", "", 0, 0},
		{"XFS (sdb1): Metadata corruption detected at xfs_agf_verify+0x1/0x2 [xfs], xfs_agf block 0x1", "sdb1", LogFilesystem, 0},
		{"XFS (sdb1): metadata I/O error in \"xfs_imap_to_bp+0x5c/0xa0\" at daddr 0x40 len 32 error 5", "sdb1", LogFilesystem, 0},
		{"XFS (sdb1): Metadata I/O Error (0x1) detected at xfs_trans_read_buf_map", "sdb1", LogFilesystem, 0},
		{"XFS (sdb1): Ending clean mount", "", 0, 0},
		{"BTRFS error (device sdc): bdev /dev/sdc errs: wr 0, rd 1, flush 0, corrupt 0, gen 0", "sdc", LogFilesystem, 0},
		{"BTRFS critical (device sdc state EA): corrupt leaf", "sdc", LogFilesystem, 0},
		{"BTRFS info (device sdc): using crc32c", "", 0, 0},
		{"", "", 0, 0},
	}
	for _, r := range rows {
		dev, kind, sector, ok := ClassifyLog(r.line)
		if dev != r.dev || kind != r.kind || sector != r.sector || ok != (r.kind != 0) {
			t.Errorf("%q: %q %v %d %v", r.line, dev, kind, sector, ok)
		}
	}
}

// TestRecordedLogs counts what real kernels wrote, each mishap once.
func TestRecordedLogs(t *testing.T) {
	_, dir := corpusMachine(t, "vm-recording")
	for file, want := range map[string]string{
		"kmsg-scsi-medium.txt":          "sde:1",
		"kmsg-scsi-timeout-offline.txt": "8:0:0:0:5 8:0:0:0:3 sde:2",
		"kmsg-scsi-reset-only.txt":      "",
		"kmsg-unplug.txt":               "dm-0:6",
		"kmsg-ata-nvme-readerr.txt":     "sdc:2 nvme0c0n1:1",
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(b)) {
			_, text, _ := strings.Cut(line, "] ")
			if dev, kind, _, ok := ClassifyLog(text); ok {
				got = append(got, dev+":"+string(rune('0'+kind)))
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", file, s, want)
		}
	}
}

func FuzzClassifyLog(f *testing.F) {
	f.Add("critical medium error, dev sde, sector 4660 op 0x0:(READ)")
	f.Add("nvme nvme0: I/O 12 QID 3 timeout, aborting")
	f.Add("I/O error, dev sda, sector 99999999999999999999999")
	f.Fuzz(func(t *testing.T, line string) {
		dev, kind, _, ok := ClassifyLog(line)
		if ok != (kind != 0) || ok != (dev != "") || !utf8.ValidString(dev) || len(dev) > len(line) {
			t.Errorf("%q: %q %v %v", line, dev, kind, ok)
		}
	})
}

// bigTree is a machine of 100 drives in an enclosure, each with a partition and a
// volume on it.
func bigTree() tree {
	w := tree{}
	enc := "sys/devices/pci0000:3a/enc/0:0:9:0/enclosure/0:0:9:0"
	w["sys/class/enclosure/0:0:9:0"] = "-> " + enc
	for i := range 100 {
		name := "sd" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		serial := "ZR" + string(rune('A'+i/26)) + string(rune('A'+i%26))
		at := w.sas(1, i, name, map[string]string{"serial": serial, "wwid": "naa.5000c500a000" + hash(serial)[:4]})
		slot := enc + "/Slot " + serial
		w[slot+"/type"], w[slot+"/locate"], w[slot+"/fault"] = "array device\n", "0\n", "0\n"
		w[slot+"/device"] = "-> " + strings.TrimSuffix(at, "/block/"+name)
		w.dm(i, "vg-"+serial, "LVM-"+serial, w.partition(at, name+"1", "8:"+serial))
		for _, attr := range []string{"stat", "inflight", "range", "ext_range", "events", "capability", "alignment_offset", "discard_alignment", "diskseq", "events_async", "events_poll_msecs"} {
			w[at+"/"+attr] = "0\n"
		}
	}
	return w
}

// memory answers from memory what it has been asked before: what is left is ours.
type memory struct {
	host.Files
	files    map[string]answer[[]byte]
	dirs     map[string]answer[[]string]
	resolved map[string]answer[string]
}

type answer[T any] struct {
	is  T
	err error
}

func remember[T any](m map[string]answer[T], name string, ask func(string) (T, error)) (T, error) {
	a, ok := m[name]
	if !ok {
		a.is, a.err = ask(name)
		m[name] = a
	}
	return a.is, a.err
}

func (m memory) ReadFile(name string) ([]byte, error) {
	return remember(m.files, name, m.Files.ReadFile)
}
func (m memory) ReadDir(name string) ([]string, error) {
	return remember(m.dirs, name, m.Files.ReadDir)
}
func (m memory) Resolve(name string) (string, error) {
	return remember(m.resolved, name, m.Files.Resolve)
}

func BenchmarkObserve(b *testing.B) {
	w := bigTree()
	dir := b.TempDir()
	w.write(b, dir)
	disk, err := host.Real(dir)
	if err != nil {
		b.Fatal(err)
	}
	for name, files := range map[string]host.Files{"kernel": disk, "memory": memory{disk, map[string]answer[[]byte]{}, map[string]answer[[]string]{}, map[string]answer[string]{}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if l := Observe(files, nil, InventoryOptions{}); len(l.Drives) != 100 || !l.Complete {
					b.Fatal(names(l))
				}
			}
		})
	}
}
