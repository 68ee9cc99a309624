package inventory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/identity"
	"github.com/drivebay/drivebay/drivemgr/internal/kernel"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

func TestReadKernel(t *testing.T) {
	w := hosttest.Tree{}
	stat := "100 0 800 5 10 0 80 5 0 40 50 3 0 24 1 4 2"
	at := w.SAS(1, 1, "sda", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001", "ioerr_cnt": "0x1a\n", "iodone_cnt": "0xff\n", "iotmo_cnt": "0x2\n", "state": "offline\n"})
	b := w.SAS(2, 1, "sdb", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001", "ioerr_cnt": "0x6\n", "state": "running\n"})
	w.Partition(at, "sda1", "8:1")
	w[at+"/stat"], w[at+"/inflight"] = stat+"\n", "       1        2\n"
	w[b+"/stat"], w[b+"/inflight"] = "1 0 8 0 0 0 0 0\n", "0 0\n" // a kernel before 4.18
	w["sys/fs/ext4/sda1/errors_count"], w["sys/fs/ext4/sda1/warning_count"] = "3\n", "1\n"
	_, drives := listTree(t, w, Options{}, hosttest.Mount("8:1", "/data", "ext4", "/dev/sda1"))
	d, m := drives["sda"], w.Machine(t)

	at0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := kernel.Read(m, &d, nil, at0)
	if k.Completed != 100+10+3+4+1 || k.Inflight != 3 || k.State != "running" || k.SizeZero || k.Frozen != 0 {
		t.Errorf("%+v", k)
	}
	if k.IOErrors == nil || *k.IOErrors != 0x20 || k.IODone == nil || *k.IODone != 0xff || k.IOTimeouts == nil || *k.IOTimeouts != 2 {
		t.Errorf("counters: %v %v %v", k.IOErrors, k.IODone, k.IOTimeouts)
	}
	if fs, want := kernel.FSErrors(m, &d), (drivebay.FSError{Device: "sda1", FS: "ext4", Errors: 3, Warnings: 1}); len(fs) != 1 || fs[0] != want {
		t.Errorf("filesystems: %+v", fs)
	}

	frozen := func(prev drivebay.Kernel) time.Duration {
		return kernel.Read(m, &d, &prev, at0.Add(time.Second)).Frozen
	}
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
	m = w.Machine(t)
	if k := kernel.Read(m, &d, &drivebay.Kernel{At: at0, Completed: k.Completed, Inflight: 3, Frozen: time.Minute}, at0.Add(time.Second)); k.Frozen != 0 || !k.SizeZero || k.Zero != 0 {
		t.Errorf("idle: frozen for %v, size zero %v for %v", k.Frozen, k.SizeZero, k.Zero)
	}
	if k := kernel.Read(m, &d, &drivebay.Kernel{At: at0, SizeZero: true, Zero: 3 * time.Second}, at0.Add(2*time.Second)); k.Zero != 5*time.Second {
		t.Errorf("at 0 bytes for %v, want 5 s", k.Zero)
	}
	empty := kernel.Read(hosttest.Tree{}.Machine(t), &d, nil, at0)
	if empty.IOErrors != nil || empty.State != "" || empty.SizeZero || len(kernel.FSErrors(hosttest.Tree{}.Machine(t), &d)) != 0 {
		t.Errorf("of a machine without the drive: %+v", empty)
	}
}

// TestRecordedLogs counts what real kernels wrote, each mishap once.
func TestRecordedLogs(t *testing.T) {
	_, dir := corpusMachine(t, "vm-recording")
	for file, want := range map[string]string{
		"kmsg-scsi-medium.txt":          "sde:1",
		"kmsg-scsi-timeout-offline.txt": "8:0:0:0:5 8:0:0:0:3 sde:2",
		"kmsg-scsi-reset-only.txt":      "",
		"kmsg-unplug.txt":               "dm-0:7",
		"kmsg-ata-nvme-readerr.txt":     "sdc:2 nvme0c0n1:1",
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(b)) {
			_, text, _ := strings.Cut(line, "] ")
			if dev, kind, _, ok := kernellog.Classify(text); ok {
				got = append(got, dev+":"+string(rune('0'+kind)))
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", file, s, want)
		}
	}
}

// bigTree is a machine of 100 drives in an enclosure, each with a partition and a
// volume on it.
func bigTree() hosttest.Tree {
	w := hosttest.Tree{}
	enc := "sys/devices/pci0000:3a/enc/0:0:9:0/enclosure/0:0:9:0"
	w["sys/class/enclosure/0:0:9:0"] = "-> " + enc
	for i := range 100 {
		name := "sd" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		serial := "ZR" + string(rune('A'+i/26)) + string(rune('A'+i%26))
		at := w.SAS(1, i, name, map[string]string{"serial": serial, "wwid": "naa.5000c500a000" + identity.Hash(serial)[:4]})
		slot := enc + "/Slot " + serial
		w[slot+"/type"], w[slot+"/locate"], w[slot+"/fault"] = "array device\n", "0\n", "0\n"
		w[slot+"/device"] = "-> " + strings.TrimSuffix(at, "/block/"+name)
		w.DM(i, "vg-"+serial, "LVM-"+serial, w.Partition(at, name+"1", "8:"+serial))
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
	w.Write(b, dir)
	disk, err := host.Real(dir)
	if err != nil {
		b.Fatal(err)
	}
	for name, files := range map[string]host.Files{"kernel": disk, "memory": memory{disk, map[string]answer[[]byte]{}, map[string]answer[[]string]{}, map[string]answer[string]{}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if l := Observe(files, nil, Options{}); len(l.Drives) != 100 || !l.Complete {
					b.Fatal(names(l))
				}
			}
		})
	}
}
