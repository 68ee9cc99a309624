//go:build root

package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/loopdisk"
	"golang.org/x/sys/unix"
)

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
			img, dev := loopdisk.New(t, fs.size)
			d := openDisk(t, w, dev, false)
			run(t, w, append(slices.Clone(fs.mkfs), d.Path())...)
			root := folders(t, "stage", "one", "two")
			stage, one, two := Place{root, "stage"}, Place{root, "one"}, Place{root, "two"}
			wants(t, "unmount nothing", w.Unmount(ctx, stage), ErrNotMounted)
			mounted(t, w, NewMount{Device: d.Path(), FS: fs.name, At: stage, Options: []string{"noatime", "nodev", "nosuid", "discard", "context=system_u:object_r:container_file_t:s0:c1,c2"}})
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
	if fs == "ext4" && !capable(unix.CAP_SYS_RESOURCE) {
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
	_, dev := loopdisk.New(t, 32*mib)
	root := folders(t, "stage", "target")
	must(t, os.WriteFile(root+"/file", nil, 0o600))
	run(t, w, "mkfs.ext4", "-q", "-F", dev)
	m := NewMount{Device: dev, FS: "ext4", At: Place{root, "stage"}}
	change := func(f func(*NewMount)) NewMount { n := m; f(&n); return n }
	wants(t, "an unknown filesystem", w.Mount(ctx, change(func(n *NewMount) { n.FS = "nofs" })), ErrImpossible)
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
	_, dev := loopdisk.New(t, 8*mib)
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
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		// What was written through is held until udev has looked at it.
		if err := w.Unmount(ctx, at); !errors.Is(err, ErrBusy) || time.Now().After(end) {
			must(t, err)
			break
		}
	}
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
	for tries := 0; tries < 300 || (len(counts) < 3 && tries < 100_000); tries++ {
		err := w.Bind(ctx, Place{root, "from"}, at, false)
		counts[fmt.Sprint("bind refused: ", err != nil)]++
		if err != nil {
			wants(t, "bind", err, ErrOutsideRoot)
			continue
		}
		for err = w.Unmount(ctx, at); errors.Is(err, ErrOutsideRoot); err = w.Unmount(ctx, at) {
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
	_, dev := loopdisk.New(t, 32*mib)
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
