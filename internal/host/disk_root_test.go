//go:build root

package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/loopdisk"
	"golang.org/x/sys/unix"
)

const mib = 1 << 20

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// sparse is a file to make a loop device of.
func run(t *testing.T, w Worker, argv ...string) {
	t.Helper()
	if out, err := w.Run(t.Context(), argv...); err != nil {
		t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

func openDisk(t *testing.T, w Worker, dev string, alone bool) Disk {
	t.Helper()
	d, err := w.OpenDisk(t.Context(), dev, alone)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// mounted mounts, and unmounts at the end what the test left mounted.
func mounted(t *testing.T, w Worker, m NewMount) {
	t.Helper()
	must(t, w.Mount(t.Context(), m))
	unmountLater(t, w, m.At)
}

func unmountLater(t *testing.T, w Worker, p Place) {
	t.Cleanup(func() {
		if err := w.Unmount(context.Background(), p); err != nil && !errors.Is(err, ErrNotMounted) {
			t.Error(err)
		}
	})
}

func folders(t *testing.T, names ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, name := range names {
		must(t, os.MkdirAll(filepath.Join(root, name), 0o750))
	}
	return root
}

func TestRootDisk(t *testing.T) {
	img, content := image(t)
	dev := loopdisk.Attach(t, img)
	w := worker(t)
	d := openDisk(t, w, dev, true)
	if d.Size() != uint64(len(content)) || d.BlockSize() != 512 || !strings.HasPrefix(d.DevNum(), "7:") || d.Path() == "" {
		t.Errorf("%d bytes in blocks of %d, number %s, at %s", d.Size(), d.BlockSize(), d.DevNum(), d.Path())
	}
	_, err := w.OpenDisk(t.Context(), dev, true)
	wants(t, "alone twice", err, ErrBusy)
	openDisk(t, w, dev, false)

	copy(content[5000:], "written")
	if n, err := d.WriteAt([]byte("written"), 5000); n != 7 || err != nil {
		t.Errorf("%d bytes written, %v", n, err)
	}
	if _, err := d.WriteAt([]byte("over"), int64(len(content))-2); err == nil {
		t.Error("a write goes over the end")
	}
	copy(content[len(content)-2:], "ov")
	must(t, d.Zero(t.Context(), 8192, 300*512))
	clear(content[8192 : 8192+300*512])
	must(t, d.Sync())
	if got, err := os.ReadFile(img); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the medium does not hold what was written, %v", err)
	}
	wants(t, "zero half a block", d.Zero(t.Context(), 512, 100), unix.EINVAL)
	for _, r := range [][2]uint64{{0, d.Size() + 512}, {d.Size() + 512, 0}, {512, math.MaxUint64}} {
		if d.Zero(t.Context(), r[0], r[1]) == nil || d.Discard(t.Context(), r[0], r[1]) == nil {
			t.Errorf("%d bytes at %d are zeroed or discarded", r[1], r[0])
		}
	}
	must(t, d.Zero(t.Context(), d.Size(), 0))
	must(t, d.Discard(t.Context(), 65536, 65536))
	clear(content[65536 : 2*65536]) // a loop device punches a hole
	must(t, d.Sync())
	got := make([]byte, len(content))
	if _, err := d.ReadAt(got, 0); err != nil || !bytes.Equal(got, content) {
		t.Errorf("after a discard: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	wants(t, "zero after the end", d.Zero(ended, 0, 512), context.Canceled)

	must(t, d.SetReadOnly(true))
	_, err = d.WriteAt(content[:512], 0)
	wants(t, "write a read-only device", errors.Join(err, d.Sync()), ErrPermission)
	other := openDisk(t, w, dev, false)
	_, err = other.WriteAt(content[:512], 0)
	wants(t, "write a read-only device by another way", errors.Join(err, other.Sync()), ErrPermission)
	wants(t, "zero a read-only device", d.Zero(t.Context(), 0, 512), ErrPermission)
	must(t, d.SetReadOnly(false))
	_, err = d.WriteAt(content[:512], 0)
	must(t, err)
	must(t, d.Close())
	if _, err := d.ReadAt(content, 0); err == nil || d.Sync() == nil {
		t.Error("a closed disk answers")
	}
}

// TestRootWipeBesideHolder: ranges of a device are wiped while another holds it, as
// device-mapper holds the partition of a physical volume whose logical volumes are active.
func TestRootWipeBesideHolder(t *testing.T) {
	img, content := image(t)
	dev := loopdisk.Attach(t, img)
	w := worker(t)
	holder := openDisk(t, w, dev, true)
	got := make([]byte, len(content))
	_, err := holder.ReadAt(got, 0) // the kernel has the pages in its memory
	must(t, err)
	d := openDisk(t, w, dev, false)
	must(t, d.Zero(t.Context(), 8192, 4096))
	must(t, d.Discard(t.Context(), 65536, 65536))
	must(t, d.Sync())
	clear(content[8192 : 8192+4096])
	clear(content[65536 : 2*65536])
	if _, err := holder.ReadAt(got, 0); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the holder reads something else: %v", err)
	}
	if got, err := os.ReadFile(img); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the medium holds something else: %v", err)
	}
}

// TestRootDiskPath hands an open device to the programs that make filesystems,
// and to those that read them.
func TestRootDiskPath(t *testing.T) {
	w := worker(t)
	_, dev := loopdisk.New(t, 400*mib)
	d := openDisk(t, w, dev, false)
	for _, tools := range [][][]string{
		{{"mkfs.ext4", "-q", "-F"}, {"e2fsck", "-fn"}, {"blkid", "-p"}},
		{{"mkfs.xfs", "-q", "-f"}, {"xfs_repair", "-n"}, {"blkid", "-p"}},
		{{"mkfs.btrfs", "-q", "-f"}, {"btrfs", "check"}, {"blkid", "-p"}},
	} {
		for _, tool := range tools {
			run(t, w, append(tool, d.Path())...)
		}
	}
	alone := openDisk(t, w, dev, true)
	var exit *ExitError
	if _, err := w.Run(t.Context(), "mkfs.ext4", "-q", "-F", d.Path()); !errors.As(err, &exit) {
		t.Errorf("mkfs of a device that is held alone: %v", err)
	}
	must(t, alone.Close())
}

// TestRootPartitions makes, grows and removes partitions while another one of the
// drive is mounted, which neither it nor the drive may be had alone then.
func TestRootPartitions(t *testing.T) {
	w := worker(t)
	_, dev := loopdisk.New(t, 64*mib)
	d := openDisk(t, w, dev, false)
	for range 2 {
		must(t, d.AddPartition(1, mib, 16*mib))
		must(t, d.AddPartition(3, 32*mib, 8*mib))
	}
	run(t, w, "mkfs.ext4", "-q", "-F", dev+"p1")
	root := folders(t, "stage")
	mounted(t, w, NewMount{Device: dev + "p1", FS: "ext4", At: Place{root, "stage"}})

	_, err := w.OpenDisk(t.Context(), dev, true)
	wants(t, "the drive alone", err, ErrBusy)
	_, err = w.OpenDisk(t.Context(), dev+"p1", true)
	wants(t, "the partition alone", err, ErrBusy)
	must(t, openDisk(t, w, dev+"p3", true).Close())

	wants(t, "add what overlaps", d.AddPartition(4, 16*mib, 8*mib), ErrBusy)
	wants(t, "add a number that is elsewhere", d.AddPartition(3, 48*mib, 8*mib), ErrBusy)
	wants(t, "remove what is mounted", d.RemovePartition(1), ErrBusy)
	wants(t, "resize what is not there", d.ResizePartition(9, mib, mib), ErrGone)
	wants(t, "resize into the next", d.ResizePartition(1, mib, 40*mib), ErrBusy)
	for range 2 {
		must(t, d.ResizePartition(1, mib, 24*mib))
		must(t, whenFree(func() error { return d.RemovePartition(3) }))
		must(t, d.AddPartition(2, 32*mib, 16*mib))
	}
	p1, p2 := openDisk(t, w, dev+"p1", false), openDisk(t, w, dev+"p2", true)
	if p1.Size() != 24*mib || p2.Size() != 16*mib {
		t.Errorf("%d and %d bytes", p1.Size(), p2.Size())
	}
	_, err = p2.WriteAt([]byte("two"), 0)
	must(t, err)
	must(t, p2.Sync())
	b := make([]byte, 3)
	if _, err := d.ReadAt(b, 32*mib); err != nil || string(b) != "two" {
		t.Errorf("the drive holds %q, %v", b, err)
	}
}

// TestRootReadsWhatOthersWrote: a drive and its partitions have page caches of their own. What a program wrote to
// a partition past the cache is read through the drive, although the drive's cache has what was there before.
func TestRootReadsWhatOthersWrote(t *testing.T) {
	w := worker(t)
	_, dev := loopdisk.New(t, 64*mib)
	must(t, openDisk(t, w, dev, false).AddPartition(1, mib, 16*mib))
	holder, err := os.Open(dev + "p1") // while a partition is open, the kernel keeps the cache of the drive
	must(t, err)
	defer holder.Close()
	old, err := os.Open(dev)
	must(t, err)
	defer old.Close()
	b := make([]byte, 4096)
	_, err = old.ReadAt(b, mib)
	must(t, err)
	written := bytes.Repeat([]byte("written "), 512)
	fd, err := unix.Open(dev+"p1", unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	must(t, err)
	aligned := aligned(len(written), 4096)
	copy(aligned, written)
	_, err = unix.Pwrite(fd, aligned, 0)
	must(t, err)
	must(t, unix.Close(fd))
	if _, err = old.ReadAt(b, mib); err != nil || bytes.Equal(b, written) {
		t.Fatalf("the kernel keeps no cache of the drive here: %v", err)
	}
	asked, err := w.OpenDrive(t.Context(), dev)
	must(t, err)
	defer asked.Close()
	for name, r := range map[string]io.ReaderAt{"disk": openDisk(t, w, dev, false), "drive": asked} {
		if _, err := old.ReadAt(b, mib); err != nil { // in the cache again, as after a look of udev
			t.Fatal(err)
		}
		if _, err := r.ReadAt(b, mib); err != nil || !bytes.Equal(b, written) {
			t.Errorf("%s: %q, %v", name, b[:8], err)
		}
	}
}

// whenFree tries until udev has looked at a device, as it does whenever one is
// closed that was open for writing.
func whenFree(do func() error) (err error) {
	for late := time.Now().Add(5 * time.Second); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		if err = do(); !errors.Is(err, ErrBusy) {
			break
		}
	}
	return err
}

// TestRootReadMedium: a block is read by itself, whatever memory it is read to, and
// what was written a moment ago is in it.
func TestRootReadMedium(t *testing.T) {
	w, err := Real("/")
	must(t, err)
	_, dev := loopdisk.New(t, 8*mib)
	d := openDisk(t, w, dev, true)
	block := bytes.Repeat([]byte("written "), 64)
	_, err = d.WriteAt(block, mib+512)
	must(t, err)
	for _, shift := range []int{0, 1, 8} {
		b := make([]byte, 4096)[shift : shift+512]
		if n, err := d.ReadMedium(b, mib+512); n != 512 || err != nil || !bytes.Equal(b, block) {
			t.Errorf("memory shifted by %d: %d bytes, %v, %q", shift, n, err, b[:8])
		}
	}
	asked, err := w.OpenDrive(t.Context(), dev)
	must(t, err)
	b := make([]byte, 4096)
	if n, err := asked.ReadMedium(b[8:520], mib+512); n != 512 || err != nil || !bytes.Equal(b[8:520], block) {
		t.Errorf("of a drive that is open for questions: %d bytes, %v", n, err)
	}
	must(t, asked.Close())
	if _, err := d.ReadMedium(make([]byte, 100), 0); err == nil || errors.Is(err, ErrUnreadable) {
		t.Errorf("a piece of a block: %v", err)
	}
	must(t, d.Close())
	if _, err := d.ReadMedium(make([]byte, 512), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
