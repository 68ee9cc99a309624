package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drivebay/drivebay/internal/host/mountoptions"
	"golang.org/x/sys/unix"
)

func worker(t *testing.T) Worker {
	t.Helper()
	w, err := Real("/")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestPlaces walks a place from nothing to a folder and a file and back.
func TestPlaces(t *testing.T) {
	w, root := worker(t), t.TempDir()
	at := func(name string) Place { return Place{root, name} }
	looks := func(p Place, want PlaceKind) {
		t.Helper()
		if got, err := w.Look(p); got != want || err != nil {
			t.Errorf("look at %s: %d, %v, want %d", p, got, err, want)
		}
	}
	twice := func(do func(Place) error, p Place) {
		t.Helper()
		for range 2 {
			if err := do(p); err != nil {
				t.Error(err)
			}
		}
	}
	defer unix.Umask(unix.Umask(0o077))
	if err := unix.Mkfifo(root+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	looks(at("."), PlaceFolder)
	looks(at("a"), PlaceNothing)
	looks(at("a/b"), PlaceNothing)
	looks(at("pipe"), PlaceOther)
	if err := w.MakeFolder(at("a/b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder in nothing: %v", err)
	}
	twice(w.MakeFolder, at("a"))
	twice(w.MakeFile, at("a/f"))
	looks(at("a"), PlaceFolder)
	looks(at("a/f"), PlaceFile)
	for name, want := range map[string]fs.FileMode{"a": fs.ModeDir | 0o750, "a/f": 0o640} {
		if info, err := os.Lstat(filepath.Join(root, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := w.MakeFolder(at("a/f")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder over a file: %v", err)
	}
	if err := w.MakeFile(at("a")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file over a folder: %v", err)
	}
	if n, err := w.ReadFolder(t.Context(), at("a")); n != 1 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	if err := w.Remove(at("a")); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("remove a full folder: %v", err)
	}
	if u, err := w.Usage(t.Context(), at("a/f")); err != nil || u.Bytes == 0 || u.Free > u.Bytes || u.Available > u.Free {
		t.Errorf("%+v, %v", u, err)
	}
	if err := os.WriteFile(root+"/a/f", []byte("data"), 0o640); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(Place) error{"remove": w.Remove, "make": w.MakeFile} {
		if err := do(at("a/f")); !errors.Is(err, ErrOccupied) {
			t.Errorf("%s a file with content: %v", name, err)
		}
	}
	if data, err := os.ReadFile(root + "/a/f"); err != nil || string(data) != "data" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if err := os.Truncate(root+"/a/f", 0); err != nil {
		t.Fatal(err)
	}
	twice(w.Remove, at("a/f"))
	twice(w.Remove, at("a"))
	twice(w.Remove, at("not/there"))
	looks(at("a"), PlaceNothing)
	if err := w.Unmount(t.Context(), at("not/there")); !errors.Is(err, ErrNotMounted) {
		t.Errorf("unmount nothing: %v", err)
	}
}

// TestReadFolder counts more entries than fit into one call.
func TestReadFolder(t *testing.T) {
	w, root := worker(t), t.TempDir()
	for i := range 3000 {
		if err := os.WriteFile(filepath.Join(root, "a rather long name of a file "+string(rune('a'+i%26))+string(rune(0x4e00+i))), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := w.ReadFolder(t.Context(), Place{root, "."}); n != 3000 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}

// TestEscapes wants every verb to refuse a link, in the way or at the end, and
// what it leads to untouched.
func TestEscapes(t *testing.T) {
	w, root, outside := worker(t), t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(root+"/real", 0o700))
	must(os.Mkdir(outside+"/folder", 0o700))
	must(os.WriteFile(outside+"/file", []byte("x"), 0o600))
	for name, to := range map[string]string{"out": outside, "up": "../" + filepath.Base(outside), "in": "real", "leaf": outside + "/folder", "dangling": outside + "/new", "proc": "/proc/self/cwd"} {
		must(os.Symlink(to, filepath.Join(root, name)))
	}
	ctx := t.Context()
	verbs := map[string]func(Place) error{
		"MakeFolder": w.MakeFolder, "MakeFile": w.MakeFile, "Remove": w.Remove,
		"Mount":      func(p Place) error { return w.Mount(ctx, NewMount{Device: aBlockDevice(t), FS: "ext4", At: p}) },
		"Bind to":    func(p Place) error { return w.Bind(ctx, Place{root, "real"}, p, false) },
		"Bind from":  func(p Place) error { return w.Bind(ctx, p, Place{root, "real"}, false) },
		"BindDevice": func(p Place) error { return w.BindDevice(ctx, aBlockDevice(t), p, false) },
		"Unmount":    func(p Place) error { return w.Unmount(ctx, p) },
		"Usage":      func(p Place) error { _, err := w.Usage(ctx, p); return err },
		"ReadFolder": func(p Place) error { _, err := w.ReadFolder(ctx, p); return err },
		"Grow":       func(p Place) error { return w.Grow(ctx, p, "ext4") },
	}
	places := []Place{
		{root, "out/folder"}, {root, "out/file"}, {root, "up/folder"}, {root, "in/x"}, {root, "proc/x"},
		{root, "leaf"}, {root, "in"}, {root, "dangling"},
		{root, "../" + filepath.Base(outside) + "/folder"}, {root, outside + "/folder"}, {root, ""}, {root, "real/"}, {root, "./real"}, {"here", "real"},
	}
	for verb, do := range verbs {
		if (verb == "Mount" || verb == "BindDevice") && aBlockDevice(t) == "" {
			continue
		}
		for _, p := range places {
			if err := do(p); !errors.Is(err, ErrOutsideRoot) {
				t.Errorf("%s %s: %v", verb, p, err)
			}
		}
	}
	for _, p := range []string{"leaf", "in", "dangling"} {
		if kind, err := w.Look(Place{root, p}); kind != PlaceOther || err != nil {
			t.Errorf("look at %s: %d, %v", p, kind, err)
		}
	}
	if _, err := w.Look(Place{root, "out/file"}); !errors.Is(err, ErrOutsideRoot) {
		t.Errorf("look behind a link: %v", err)
	}
	if names, err := worker(t).ReadDir(outside); err != nil || !slices.Equal(names, []string{"file", "folder"}) {
		t.Errorf("outside holds %q, %v", names, err)
	}
}

// aBlockDevice is any device node of this machine, "" if it has none.
func aBlockDevice(t *testing.T) string {
	nodes, err := filepath.Glob("/dev/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if info, err := os.Lstat(node); err == nil && info.Mode()&(fs.ModeDevice|fs.ModeCharDevice|fs.ModeSymlink) == fs.ModeDevice {
			return node
		}
	}
	return ""
}

func TestSortOptions(t *testing.T) {
	rows := []struct {
		list       []string
		readOnly   bool
		attributes int
		ofFS       []string
	}{
		{nil, false, 0, nil},
		{[]string{"defaults", "rw", "nofail", "_netdev", "x-systemd.automount", ""}, false, 0, nil},
		{[]string{"noatime", "nodev", "nosuid", "discard", "commit=5"}, false, unix.MOUNT_ATTR_NOATIME | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID, []string{"discard", "commit=5"}},
		{[]string{"nouuid"}, true, unix.MOUNT_ATTR_RDONLY, []string{"nouuid", "ro"}},
		{[]string{"ro"}, false, unix.MOUNT_ATTR_RDONLY, []string{"ro"}},
		{[]string{"rw"}, true, unix.MOUNT_ATTR_RDONLY, []string{"ro"}},
		{[]string{"noatime", "strictatime", "nodiratime"}, false, unix.MOUNT_ATTR_STRICTATIME | unix.MOUNT_ATTR_NODIRATIME, nil},
		{[]string{"noatime", "relatime"}, false, 0, nil},
	}
	for _, r := range rows {
		if o := mountoptions.Sort(r.list, r.readOnly); o.Attributes != r.attributes || !slices.Equal(o.OfFS, r.ofFS) {
			t.Errorf("%q, read-only %v: %#x %q", r.list, r.readOnly, o.Attributes, o.OfFS)
		}
	}
}

// TestOpenDiskRefuses what is no block device, and what is not there.
func TestOpenDiskRefuses(t *testing.T) {
	w := worker(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dev, want := range map[string]error{"/dev/null": ErrUnsupported, plain: ErrUnsupported, "/dev/no-such-drive": ErrGone} {
		if _, err := w.OpenDisk(t.Context(), dev, false); !errors.Is(err, want) {
			t.Errorf("open %s: %v", dev, err)
		}
	}
}
