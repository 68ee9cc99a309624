package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A recording may hold links of any kind. None of them reads this machine.
func TestLinksStayInside(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "outside")
	write(t, filepath.Join(dir, "sys/inside"), "inside")
	for name, target := range map[string]string{
		"sys/absolute": secret, "sys/up": "../../../../../../../" + secret, "sys/good": "/sys/inside", "sys/loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Recorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sys/absolute", "sys/up", "sys/loop", "../../../../../.." + secret} {
		if b, err := m.ReadFile(name); err == nil {
			t.Errorf("%s reads %q from outside", name, b)
		}
	}
	if b, err := m.ReadFile("sys/good"); err != nil || string(b) != "inside" {
		t.Errorf("an absolute link inside: %q, %v", b, err)
	}
	if got, err := m.Resolve("sys/good"); err != nil || got != "sys/inside" {
		t.Errorf("resolved to %q, %v", got, err)
	}
	if got, err := m.Readlink("sys/good"); err != nil || got != "/sys/inside" {
		t.Errorf("the link's text is %q, %v", got, err)
	}
	// A link that an archive kept as text is the link it was; other text is text.
	write(t, filepath.Join(dir, "sys/devices/d/size"), "8\n")
	write(t, filepath.Join(dir, "sys/block/sda"), "../devices/d")
	write(t, filepath.Join(dir, "sys/devices/d/note"), "../devices/d\n")
	if b, err := m.ReadFile("sys/block/sda/size"); err != nil || string(b) != "8\n" {
		t.Errorf("through a link kept as text: %q, %v", b, err)
	}
	if b, err := m.ReadFile("sys/block/sda/note"); err != nil || string(b) != "../devices/d\n" {
		t.Errorf("text that is no link: %q, %v", b, err)
	}
	if _, err := m.ReadFile("sys/absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
	if err := m.WriteFile("sys/inside", []byte("x")); !errors.Is(err, ErrImpossible) {
		t.Errorf("a recording can be written: %v", err)
	}
}

// The machine below a folder is read the same way by the kernel and by the walk
// that stands in for it.
func TestOtherRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "outside")
	write(t, filepath.Join(dir, "sys/devices/a/size"), "8\n")
	write(t, filepath.Join(dir, "sys/devices/a/text"), "../a")
	for name, target := range map[string]string{"sys/a": "/sys/devices/a", "sys/up": "../../.." + secret, "sys/loop": "loop", "sys/dead": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(t.TempDir(), "alias") // the root may be named through a link
	if err := os.Symlink(dir, other); err != nil {
		t.Fatal(err)
	}
	kernel, err := newTree(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]Files{"kernel": kernel, "walk": &tree{dir: kernel.dir, fd: -1, walker: &walker{dir: kernel.dir}}} {
		t.Run(name, func(t *testing.T) {
			if b, err := files.ReadFile("sys/a/size"); err != nil || string(b) != "8\n" {
				t.Errorf("through a link: %q, %v", b, err)
			}
			if b, err := files.ReadFile("sys/a/text"); err != nil || string(b) != "../a" {
				t.Errorf("text is text here: %q, %v", b, err)
			}
			if got, err := files.Resolve("sys/a/size"); err != nil || got != "sys/devices/a/size" {
				t.Errorf("resolved to %q, %v", got, err)
			}
			if got, err := files.Readlink("sys/a"); err != nil || got != "/sys/devices/a" {
				t.Errorf("the link's text is %q, %v", got, err)
			}
			if names, err := files.ReadDir("sys/a"); err != nil || len(names) != 2 {
				t.Errorf("listed %q, %v", names, err)
			}
			if names, err := files.ReadDir(""); err != nil || len(names) != 1 {
				t.Errorf("the root holds %q, %v", names, err)
			}
			for _, name := range []string{"sys/up", "sys/loop", "../../../.." + secret} {
				if b, err := files.ReadFile(name); err == nil {
					t.Errorf("%s reads %q", name, b)
				}
			}
			if _, err := files.ReadFile("sys/dead"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a dead link: %v", err)
			}
			if _, err := files.Readlink("sys/devices"); err == nil {
				t.Error("a folder is a link")
			}
		})
	}
}

func TestRealWritesCreateNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "attr"), "0")
	m, err := Real(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.WriteFile("attr", []byte("1")); err != nil {
		t.Error(err)
	}
	if err := m.WriteFile("new", []byte("1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("writing a file that is not there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was created")
	}
	big := bytes.Repeat([]byte("x"), MaxFile+1)
	write(t, filepath.Join(dir, "big"), string(big))
	if _, err := m.ReadFile("big"); err == nil {
		t.Error("a file without end is read whole")
	}
	write(t, filepath.Join(dir, "full"), string(big[:MaxFile]))
	if b, err := m.ReadFile("full"); err != nil || len(b) != MaxFile {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestRun(t *testing.T) {
	m, err := Real("/")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := m.Run(t.Context(), "echo", "a b"); err != nil || string(out) != "a b\n" {
		t.Errorf("echo: %q, %v", out, err)
	}
	var exit *ExitError
	if _, err := m.Run(t.Context(), "sh", "-c", "echo why >&2; exit 5"); !errors.As(err, &exit) || exit.Code != 5 || exit.Stderr != "why\n" {
		t.Errorf("exit 5: %v", err)
	}
	if _, err := m.Run(t.Context(), "no-such-program-here"); err == nil || !bytes.Contains([]byte(err.Error()), []byte("no-such-program-here is not installed")) {
		t.Errorf("a missing program: %v", err)
	}
	if _, err := m.Run(t.Context(), "head", "-c", "65000000", "/dev/zero"); err != nil {
		t.Errorf("62 MiB: %v", err)
	}
	if _, err := m.Run(t.Context(), "head", "-c", "70000000", "/dev/zero"); err == nil || !bytes.Contains([]byte(err.Error()), []byte("output of more")) {
		t.Errorf("67 MiB: %v", err)
	}
	if _, err := m.Run(t.Context(), "sh", "-c", "kill -9 $$"); !errors.As(err, &exit) || exit.Code != -1 {
		t.Errorf("killed: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := m.Run(ctx, "sleep", "60"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("a program that hangs: %v after %v", err, time.Since(began))
	}
}

func TestMounts(t *testing.T) {
	m, err := Real("/")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := m.Mounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, mt := range mounts {
		if mt.Target == "/" {
			return
		}
	}
	t.Errorf("no root among %d mounts", len(mounts))
}

// A table that has not changed is not read apart again, one that has changed is.
func TestMountTableRemembers(t *testing.T) {
	dir := t.TempDir()
	files, err := newTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "proc/1"), 0o750); err != nil {
		t.Fatal(err)
	}
	var table mountTable
	const rw, ro = "36 35 98:0 / /a rw - ext4 /dev/a rw\n", "36 35 98:0 / /a rw - ext4 /dev/a ro\n"
	var last []Mount
	for i, text := range []string{rw, rw, ro} {
		if err := os.WriteFile(filepath.Join(dir, "proc/1/mountinfo"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := table.of(files)
		if want := parseMountinfo(text); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%+v %v, want %+v", got, err, want)
		}
		if same := last != nil && &got[0] == &last[0]; same != (i == 1) {
			t.Errorf("reading %d: the list is the one before: %v", i, same)
		}
		last = got
	}
}

func TestParseMountinfo(t *testing.T) {
	got := parseMountinfo("36 35 98:0 /mnt1 /with\\040blank rw,noatime master:1 - ext3 /dev/root rw,errors=continue\nnonsense\n22 27 0:21 / /proc rw - proc proc rw\n")
	want := []Mount{
		{ID: 36, DevNum: "98:0", Root: "/mnt1", Target: "/with blank", FS: "ext3", Source: "/dev/root", Opts: "rw,noatime,rw,errors=continue"},
		{ID: 22, DevNum: "0:21", Root: "/", Target: "/proc", FS: "proc", Source: "proc", Opts: "rw,rw"},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
}

func FuzzMountTables(f *testing.F) {
	f.Add([]byte("36 35 98:0 /a\\040 /b rw - ext3 /dev/root rw\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseMountinfo(string(b))
		parseMounts(string(b))
	})
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
