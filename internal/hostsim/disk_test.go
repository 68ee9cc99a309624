package hostsim_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

var _ host.Worker = (*hostsim.Machine)(nil)

func openDisk(t testing.TB, m host.Disks, dev string, alone bool) host.Disk {
	t.Helper()
	d, err := m.OpenDisk(t.Context(), dev, alone)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func writeAt(t testing.TB, d host.Disk, text string, off int64) {
	t.Helper()
	if _, err := d.WriteAt([]byte(text), off); err != nil {
		t.Fatal(err)
	}
}

func readAt(t testing.TB, d io.ReaderAt, n int, off int64) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := d.ReadAt(b, off); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const mib = 1 << 20

// TestWrites: what is written to a drive, a partition of it or through another
// handle is the same bytes; zeros take no room.
func TestWrites(t *testing.T) {
	m, _ := load(t, small)
	d := openDisk(t, m, "/dev/sda", false)
	long := strings.Repeat("drivebay", 2000)
	writeAt(t, d, long, 4095)
	if got := readAt(t, d, len(long)+2, 4094); got != "\x00"+long+"\x00" {
		t.Error("what was written over the ends of pages is not read")
	}
	if err := d.AddPartition(1, 1*mib, 8*mib); err != nil {
		t.Fatal(err)
	}
	p := openDisk(t, m, "/dev/sda1", false)
	writeAt(t, p, "inside", 512)
	if got := readAt(t, openDisk(t, m, d.Path(), false), 6, 1*mib+512); got != "inside" || p.Size() != 8*mib || p.DevNum() != "8:1" {
		t.Errorf("the drive reads %q where its partition %s of %d bytes was written", got, p.DevNum(), p.Size())
	}
	if _, err := p.WriteAt([]byte("over"), 8*mib-2); err == nil {
		t.Error("a write beyond the end is taken")
	}
	if n, err := p.ReadAt(make([]byte, 10), 8*mib-4); n != 4 || err != io.EOF {
		t.Errorf("a read over the end: %d, %v", n, err)
	}
	if err := p.Zero(t.Context(), 512, 512); err != nil || readAt(t, p, 6, 512) != strings.Repeat("\x00", 6) {
		t.Errorf("it reads %q after zero: %v", readAt(t, p, 6, 512), err)
	}
	if err := p.Zero(t.Context(), 100, 512); err == nil {
		t.Error("half a block is zeroed")
	}
	if err := d.Zero(t.Context(), 0, d.Size()); err != nil || readAt(t, d, len(long), 4095) != strings.Repeat("\x00", len(long)) {
		t.Errorf("a whole drive of zeros: %v", err)
	}
	if err := d.Discard(t.Context(), 0, mib); !errors.Is(err, host.ErrUnsupported) {
		t.Errorf("a hard disk forgets: %v", err)
	}
	n := openDisk(t, m, "/dev/nvme0n1", false)
	writeAt(t, n, "secret", 0)
	if err := n.Discard(t.Context(), 0, mib); err != nil || readAt(t, n, 6, 0) == "secret" {
		t.Errorf("an NVMe drive remembers: %v", err)
	}
}

func BenchmarkZeroRack(b *testing.B) {
	m, err := hostsim.New(hostsim.Generate(100))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	d, err := m.OpenDisk(b.Context(), "/dev/sda", false)
	if err != nil {
		b.Fatal(err)
	}
	zeros := make([]byte, mib)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.WriteAt(zeros, 0); err != nil {
			b.Fatal(err)
		}
		if err := d.Zero(b.Context(), 0, d.Size()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAlone: who has a device, or a part of it, keeps others from having it alone.
func TestAlone(t *testing.T) {
	m, _ := load(t, small)
	d := openDisk(t, m, "/dev/sda", true)
	for _, p := range []struct{ number, start, size int }{{1, 1, 8}, {2, 16, 8}} {
		if err := d.AddPartition(p.number, uint64(p.start*mib), uint64(p.size*mib)); err != nil {
			t.Fatal(err)
		}
	}
	busy := func(dev string, want bool) {
		t.Helper()
		h, err := m.OpenDisk(t.Context(), dev, true)
		if errors.Is(err, host.ErrBusy) != want || err != nil && !want {
			t.Errorf("%s alone: %v, want busy %v", dev, err, want)
		}
		if err == nil {
			h.Close()
		}
	}
	busy("/dev/sda", true)
	busy("/dev/sda1", true)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	busy("/dev/sda1", false)
	p := openDisk(t, m, "/dev/sda1", true)
	busy("/dev/sda", true)
	busy("/dev/sda2", false)
	busy("/dev/vda1", true) // the machine runs from it
	busy("/dev/vda", true)
	d = openDisk(t, m, "/dev/sda", false)
	for what, err := range map[string]error{
		"remove one that is open": d.RemovePartition(1), "grow into the next": d.ResizePartition(1, 1*mib, 20*mib), "add over another": d.AddPartition(3, 17*mib, mib),
	} {
		if !errors.Is(err, host.ErrBusy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"what is known": d.AddPartition(1, 1*mib, 8*mib), "what is not known": d.RemovePartition(9), "grow": d.ResizePartition(1, 1*mib, 10*mib), "close": p.Close(),
		"remove": d.RemovePartition(1),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := p.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("a partition is read that was closed")
	}
}

// TestPartitionsFollow: a partition is in sysfs, in udev's database and in the
// events while it is there, and a drive brings along those of its table.
func TestPartitionsFollow(t *testing.T) {
	m, _ := load(t, strings.ReplaceAll(small, "serial: HDD0,", "serial: HDD0, content: gpt,"))
	events, err := m.Uevents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part := func(action string) func(host.Uevent) bool {
		return func(e host.Uevent) bool { return e.Action == action && e.Env["DEVTYPE"] == "partition" }
	}
	d := openDisk(t, m, "/dev/sda", false)
	if got := read(t, m, "sys/class/block/sda1/start"); got != "34" {
		t.Errorf("the partition of the table starts at %s", got)
	}
	if err := d.RemovePartition(1); err != nil {
		t.Fatal(err)
	}
	next(t, events, "removal", part("remove"))
	if err := d.AddPartition(20, 1*mib, 4*mib); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events, "partition", part("add")); e.DevName != "sda20" || !strings.HasSuffix(e.DevPath, "/sda/sda20") {
		t.Errorf("uevent %+v", e)
	}
	num := read(t, m, "sys/block/sda/sda20/dev")
	if got := read(t, m, "sys/dev/block/"+num+"/size") + read(t, m, "sys/class/block/sda20/partition"); got != "819220" {
		t.Errorf("sysfs says %s", got)
	}
	if err := d.ResizePartition(20, 1*mib, 5*mib); err != nil || read(t, m, "sys/class/block/sda20/size") != "10240" {
		t.Errorf("it has %s sectors after it grew: %v", read(t, m, "sys/class/block/sda20/size"), err)
	}
	next(t, events, "change", part("change"))
	p := openDisk(t, m, "/dev/sda20", false)
	inject(t, m, "2", "vanish")
	if _, err := m.Resolve("sys/class/block/sda20"); err == nil {
		t.Error("the partition of a drive that was pulled is there")
	}
	if _, err := p.WriteAt([]byte("x"), 0); !errors.Is(err, host.ErrGone) {
		t.Errorf("a write to it: %v", err)
	}
	if err := errors.Join(p.Close(), d.Close()); err != nil { // else its name would not be given out again
		t.Fatal(err)
	}
	inject(t, m, "2", "return")
	udev := read(t, m, "run/udev/data/b"+read(t, m, "sys/class/block/sda1/dev"))
	if !strings.Contains(udev, "E:ID_PART_ENTRY_NAME=data\n") || !strings.Contains(udev, "E:ID_PART_ENTRY_TYPE=0fc63daf-8483-4772-8e79-3d69d8477de4") {
		t.Errorf("udev knows of the partition in the table: %s", udev)
	}
	if _, err := m.Resolve("sys/class/block/sda20"); err == nil {
		t.Error("a partition that is in no table came back")
	}
}

// TestDriveFaultsReach: a fault of a drive is one of all that is on it.
func TestDriveFaultsReach(t *testing.T) {
	m, _ := load(t, small)
	whole := openDisk(t, m, "/dev/sda", false)
	if err := whole.AddPartition(1, mib, mib); err != nil {
		t.Fatal(err)
	}
	d := openDisk(t, m, "/dev/sda1", false)
	for fault, want := range map[string]struct{ read, write error }{
		"eio": {errAny, errAny}, "offline": {host.ErrGone, host.ErrGone}, "read-only": {nil, host.ErrPermission},
	} {
		inject(t, m, "2", fault)
		_, readErr := d.ReadAt(make([]byte, 512), 0)
		_, writeErr := d.WriteAt([]byte("x"), 0)
		if !like(readErr, want.read) || !like(writeErr, want.write) {
			t.Errorf("%s: read %v, write %v", fault, readErr, writeErr)
		}
		inject(t, m, "2", "heal")
	}
	if err := whole.SetReadOnly(true); err != nil || read(t, m, "sys/class/block/sda1/ro") != "1" {
		t.Errorf("the drive is read-only, its partition is not: %v", err)
	}
	if _, err := d.WriteAt([]byte("x"), 0); !errors.Is(err, host.ErrPermission) {
		t.Errorf("a write to a read-only drive: %v", err)
	}
	if err := whole.SetReadOnly(false); err != nil {
		t.Fatal(err)
	}
	inject(t, m, "2", "hang")
	done := make(chan error)
	go func() { done <- d.Zero(t.Context(), 0, 512) }()
	select {
	case err := <-done:
		t.Errorf("a drive that hangs did it: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if got := read(t, m, "sys/class/block/sda1/inflight"); got == "0        0" {
		t.Error("nothing is under way")
	}
	inject(t, m, "2", "heal")
	if err := <-done; err != nil {
		t.Errorf("after it answers again: %v", err)
	}
}

var errAny = errors.New("any error")

func like(err, want error) bool {
	if want == errAny {
		return err != nil
	}
	return errors.Is(err, want) || want == nil && err == nil
}

// TestSlowDisk: a slow drive delays, and the time that a call was given ends it.
func TestSlowDisk(t *testing.T) {
	m, clock := load(t, small)
	d := openDisk(t, m, "/dev/sda", false)
	inject(t, m, "2", "slow", "delay=5s")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := d.Zero(ctx, 0, 512); !errors.Is(err, host.ErrTimeout) {
		t.Errorf("it ended with %v", err)
	}
	done := make(chan error)
	go func() { _, err := d.WriteAt(bytes.Repeat([]byte{1}, 512), 0); done <- err }()
	for {
		clock.Advance(time.Second)
		select {
		case err := <-done:
			if err != nil || clock.Now().Sub(start) < 5*time.Second {
				t.Errorf("after %v: %v", clock.Now().Sub(start), err)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
