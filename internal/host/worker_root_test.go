//go:build root

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
func sparse(t *testing.T, size int64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "disk.img")
	must(t, os.WriteFile(name, nil, 0o600))
	must(t, os.Truncate(name, size))
	return name
}

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
	dev := loop(t, img)
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

// TestRootDiskPath hands an open device to the programs that make filesystems,
// and to those that read them.
func TestRootDiskPath(t *testing.T) {
	w := worker(t)
	dev := loop(t, sparse(t, 400*mib))
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
	dev := loop(t, sparse(t, 64*mib), "--partscan")
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

// filesystems are the ones that volumes have, of sizes that each can grow from.
var filesystems = []struct {
	name string
	mkfs []string
	size int64
}{
	{"ext4", []string{"mkfs.ext4", "-q", "-F"}, 64 * mib},
	{"xfs", []string{"mkfs.xfs", "-q", "-f"}, 320 * mib},
	{"btrfs", []string{"mkfs.btrfs", "-q", "-f"}, 300 * mib},
}

// TestRootMounts stages, publishes twice, once read-only, grows and takes it all
// away again.
func TestRootMounts(t *testing.T) {
	for _, fs := range filesystems {
		t.Run(fs.name, func(t *testing.T) {
			w, ctx := worker(t), t.Context()
			img := sparse(t, fs.size)
			dev := loop(t, img)
			d := openDisk(t, w, dev, false)
			run(t, w, append(slices.Clone(fs.mkfs), d.Path())...)
			root := folders(t, "stage", "one", "two")
			stage, one, two := Place{root, "stage"}, Place{root, "one"}, Place{root, "two"}
			wants(t, "unmount nothing", w.Unmount(ctx, stage), ErrNotMounted)
			mounted(t, w, NewMount{Device: d.Path(), FS: fs.name, At: stage, Options: []string{"noatime", "nodev", "nosuid", "discard"}})
			must(t, w.Bind(ctx, stage, one, false))
			unmountLater(t, w, one)
			must(t, w.Bind(ctx, stage, two, true))
			unmountLater(t, w, two)

			must(t, os.WriteFile(root+"/one/file", []byte("x"), 0o600))
			wants(t, "write to the read-only one", os.WriteFile(root+"/two/other", nil, 0o600), unix.EROFS)
			must(t, os.WriteFile(root+"/one/file", []byte("y"), 0o600))
			if b, err := os.ReadFile(root + "/two/file"); err != nil || string(b) != "y" {
				t.Errorf("%q, %v", b, err)
			}
			if m := mountAt(t, w, root+"/stage"); m.Source != dev || m.FS != fs.name || !strings.HasPrefix(m.Opts, "rw,nosuid,nodev,noatime") || !strings.Contains(m.Opts, "discard") {
				t.Errorf("%+v", m)
			}
			if m := mountAt(t, w, root+"/two"); !strings.HasPrefix(m.Opts, "ro,nosuid,nodev,noatime") {
				t.Errorf("%+v", m)
			}
			if n, err := w.ReadFolder(ctx, one); err != nil || n < 1 {
				t.Errorf("%d entries, %v", n, err)
			}

			grows(t, w, fs.name, fs.size, img, dev, stage, one)

			busy, err := os.Open(root + "/one/file")
			must(t, err)
			wants(t, "unmount what is open", w.Unmount(ctx, one), ErrBusy)
			wants(t, "remove what is mounted", w.Remove(one), ErrBusy)
			wants(t, "the device alone", second(w.OpenDisk(ctx, dev, true)), ErrBusy)
			must(t, busy.Close())
			for _, p := range []Place{one, two, stage} {
				must(t, w.Unmount(ctx, p))
				wants(t, "unmount twice", w.Unmount(ctx, p), ErrNotMounted)
				must(t, w.Remove(p))
			}
			must(t, second(w.OpenDisk(ctx, dev, true)))
		})
	}
}

// grows makes the file of a device larger, and the filesystem by one of the places
// where it is mounted.
func grows(t *testing.T, w Worker, fs string, size int64, img, dev string, look, by Place) {
	t.Helper()
	ctx := t.Context()
	before, err := w.Usage(ctx, look)
	must(t, err)
	if fs == "ext4" && !capable(t, unix.CAP_SYS_RESOURCE) {
		wants(t, "grow without CAP_SYS_RESOURCE", w.Grow(ctx, by, fs), ErrPermission)
		return
	}
	must(t, w.Grow(ctx, by, fs)) // there is nowhere to grow to
	must(t, os.Truncate(img, 2*size))
	run(t, w, "losetup", "-c", dev)
	for range 2 {
		must(t, w.Grow(ctx, by, fs))
	}
	after, err := w.Usage(ctx, look)
	must(t, err)
	if after.Bytes < before.Bytes+uint64(size)*3/4 || after.Bytes > 2*uint64(size) || after.Available > after.Free {
		t.Errorf("grew from %+v to %+v", before, after)
	}
	must(t, os.Truncate(img, 2*size+mib/16)) // less than xfs and btrfs can use
	run(t, w, "losetup", "-c", dev)
	must(t, w.Grow(ctx, by, fs))
}

func capable(t *testing.T, capability int) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	must(t, unix.Capget(&header, &data[0]))
	return data[capability/32].Effective>>(capability%32)&1 == 1
}

func second[T interface{ Close() error }](v T, err error) error {
	if err == nil {
		return v.Close()
	}
	return err
}

func mountAt(t *testing.T, w Worker, target string) Mount {
	t.Helper()
	mounts, err := w.Mounts(t.Context())
	must(t, err)
	for _, m := range mounts {
		if m.Target == target {
			return m
		}
	}
	t.Fatalf("nothing is mounted at %s", target)
	return Mount{}
}

// TestRootMountRefusals are mounts that must not come about.
func TestRootMountRefusals(t *testing.T) {
	w, ctx := worker(t), t.Context()
	dev := loop(t, sparse(t, 32*mib))
	root := folders(t, "stage", "target")
	must(t, os.WriteFile(root+"/file", nil, 0o600))
	run(t, w, "mkfs.ext4", "-q", "-F", dev)
	m := NewMount{Device: dev, FS: "ext4", At: Place{root, "stage"}}
	change := func(f func(*NewMount)) NewMount { n := m; f(&n); return n }
	wants(t, "a filesystem that is none", w.Mount(ctx, change(func(n *NewMount) { n.FS = "nofs" })), ErrNotHere)
	wants(t, "no device", w.Mount(ctx, change(func(n *NewMount) { n.Device = "/dev/no-such-drive" })), ErrGone)
	wants(t, "a file for a device", w.Mount(ctx, change(func(n *NewMount) { n.Device = root + "/file" })), ErrUnsupported)
	wants(t, "on a file", w.Mount(ctx, change(func(n *NewMount) { n.At.Name = "file" })), unix.ENOTDIR)
	wants(t, "another filesystem", w.Mount(ctx, change(func(n *NewMount) { n.FS = "xfs" })), unix.EINVAL)
	err := w.Mount(ctx, change(func(n *NewMount) { n.Options = []string{"noatime", "password=swordfish"} }))
	if wants(t, "a bad option", err, unix.EINVAL); err != nil && strings.Contains(err.Error(), "word") {
		t.Errorf("the option is told: %v", err)
	}
	alone := openDisk(t, w, dev, true)
	wants(t, "what another has alone", w.Mount(ctx, m), ErrBusy)
	must(t, alone.Close())
	wants(t, "a folder on a file", w.Bind(ctx, Place{root, "stage"}, Place{root, "file"}, false), unix.EINVAL)
	if kind, err := w.Look(Place{root, "stage"}); kind != PlaceFolder || err != nil {
		t.Errorf("%d, %v", kind, err)
	}
	wants(t, "is anything mounted", w.Unmount(ctx, m.At), ErrNotMounted)

	m.ReadOnly = true
	mounted(t, w, m)
	wants(t, "write", os.WriteFile(root+"/stage/file", nil, 0o600), unix.EROFS)
	must(t, w.Bind(ctx, m.At, Place{root, "target"}, false))
	unmountLater(t, w, Place{root, "target"})
	wants(t, "write by a bind", os.WriteFile(root+"/target/file", nil, 0o600), unix.EROFS)
}

// TestRootBindDevice makes a raw device appear at a file.
func TestRootBindDevice(t *testing.T) {
	w, ctx := worker(t), t.Context()
	dev := loop(t, sparse(t, 8*mib))
	d := openDisk(t, w, dev, false)
	root := folders(t, "pod")
	at := Place{root, "pod/device"}
	must(t, w.MakeFile(at))
	must(t, w.BindDevice(ctx, d.Path(), at, true))
	unmountLater(t, w, at)
	if kind, err := w.Look(at); kind != PlaceDevice || err != nil {
		t.Errorf("%d, %v", kind, err)
	}
	seen := openDisk(t, w, at.String(), false)
	if seen.DevNum() != d.DevNum() {
		t.Errorf("%s appears as %s", d.DevNum(), seen.DevNum())
	}
	// What BindDevice says of read-only mounts.
	_, err := seen.WriteAt([]byte("through"), 0)
	must(t, err)
	must(t, d.SetReadOnly(true))
	_, err = seen.WriteAt([]byte("through"), 0)
	wants(t, "write a read-only device", errors.Join(err, seen.Sync()), ErrPermission)
	must(t, d.SetReadOnly(false))
	must(t, seen.Close())

	held, err := os.Open(at.String())
	must(t, err)
	wants(t, "unmount what is open", w.Unmount(ctx, at), ErrBusy)
	must(t, held.Close())
	must(t, w.Unmount(ctx, at))
	must(t, w.Remove(at))
	wants(t, "a folder as a device", w.BindDevice(ctx, root, at, false), ErrUnsupported)
}

// TestRootStacked unmounts the topmost mount first.
func TestRootStacked(t *testing.T) {
	w, ctx := worker(t), t.Context()
	root := folders(t, "a", "b", "at")
	must(t, w.MakeFile(Place{root, "a/in-a"}))
	must(t, w.MakeFile(Place{root, "b/in-b"}))
	at := Place{root, "at"}
	for _, from := range []string{"a", "b"} {
		must(t, w.Bind(ctx, Place{root, from}, at, false))
		unmountLater(t, w, at)
	}
	for _, want := range []string{"in-b", "in-a"} {
		if _, err := os.Stat(filepath.Join(root, "at", want)); err != nil {
			t.Error(err)
		}
		must(t, w.Unmount(ctx, at))
	}
	wants(t, "one too many", w.Unmount(ctx, at), ErrNotMounted)
}

// TestRootSwaps lets somebody swap a folder for a link to another all the time,
// while things are mounted and unmounted there: nothing ever comes to be outside.
func TestRootSwaps(t *testing.T) {
	w, ctx := worker(t), t.Context()
	outside, root := folders(t, "pod/target"), folders(t, "pod/target", "from")
	must(t, os.Symlink(outside+"/pod", root+"/link"))
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, root+"/link", unix.AT_FDCWD, root+"/pod", unix.RENAME_EXCHANGE); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	at, counts := Place{root, "pod/target"}, map[string]int{}
	for range 300 {
		err := w.Bind(ctx, Place{root, "from"}, at, false)
		counts[fmt.Sprint("bind refused: ", err != nil)]++
		if err != nil {
			wants(t, "bind", err, ErrEscape)
			continue
		}
		for err = w.Unmount(ctx, at); errors.Is(err, ErrEscape); err = w.Unmount(ctx, at) {
			counts["unmount refused"]++
		}
		must(t, err)
	}
	close(stop)
	must(t, <-done)
	t.Log(counts)
	if len(counts) != 3 {
		t.Error("the swaps never met a mount")
	}
	mounts, err := w.Mounts(ctx)
	must(t, err)
	for _, m := range mounts {
		if strings.HasPrefix(m.Target, outside) || strings.HasPrefix(m.Target, root) {
			t.Errorf("left mounted: %s", m.Target)
		}
	}
}

// TestRootElsewhere looks for device nodes below another root, and for what is
// open already in our own world.
func TestRootElsewhere(t *testing.T) {
	dev := loop(t, sparse(t, 32*mib))
	var st unix.Stat_t
	must(t, unix.Stat(dev, &st))
	root := folders(t, "dev", "stage")
	must(t, unix.Mknod(root+"/dev/mine", unix.S_IFBLK|0o600, int(st.Rdev)))
	w, err := Real(root)
	must(t, err)
	d := openDisk(t, w, "/dev/mine", false)
	run(t, w, "mkfs.ext4", "-q", "-F", d.Path())
	for _, name := range []string{"/dev/mine", d.Path()} {
		at := Place{root, "stage"}
		mounted(t, w, NewMount{Device: name, FS: "ext4", At: at})
		if m := mountAt(t, worker(t), root+"/stage"); m.DevNum != d.DevNum() || m.Source != root+"/dev/mine" {
			t.Errorf("%+v", m)
		}
		must(t, w.Unmount(t.Context(), at))
	}
	_, err = w.OpenDisk(t.Context(), dev, false)
	wants(t, "a node of another root", err, ErrGone)
}
