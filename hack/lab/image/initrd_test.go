package image

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// member is a file of an archive.
type member struct {
	name                string
	mode, links, device int
	content             string
}

// readArchive reads the "newc" format as the kernel's description of initramfs
// has it (Documentation/driver-api/early-userspace/buffer-format.rst): a header
// of ASCII hexadecimal fields, the name with its NUL up to a multiple of four,
// the content up to a multiple of four, until the name TRAILER!!!.
func readArchive(b []byte) ([]member, error) {
	var out []member
	inodes := map[int]bool{}
	for at := 0; ; {
		if len(b) < at+110 || string(b[at:at+6]) != "070701" {
			return out, fmt.Errorf("no header at %d", at)
		}
		var f [13]int // ino mode uid gid nlink mtime filesize maj min rmaj rmin namesize chksum
		for i := range f {
			n, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				return out, err
			}
			f[i] = int(n)
		}
		nameEnd := at + 110 + f[11]
		start := (nameEnd + 3) &^ 3
		end := start + f[6]
		if len(b) < end || f[11] < 2 || b[nameEnd-1] != 0 {
			return out, fmt.Errorf("the member at %d goes beyond the end", at)
		}
		m := member{name: string(b[at+110 : nameEnd-1]), mode: f[1], links: f[4], device: f[9]<<8 | f[10], content: string(b[start:end])}
		at = (end + 3) &^ 3
		if strings.Trim(string(b[nameEnd:start]), "\x00") != "" || len(b) < at || strings.Trim(string(b[end:at]), "\x00") != "" {
			return out, fmt.Errorf("%s: padding is not zero", m.name)
		}
		if f[2] != 0 || f[3] != 0 || f[12] != 0 || inodes[f[0]] {
			return out, fmt.Errorf("%s: owner %d:%d, checksum %d, or its inode %d is taken", m.name, f[2], f[3], f[12], f[0])
		}
		inodes[f[0]] = true
		if m.name == "TRAILER!!!" {
			if at != len(b) {
				return out, fmt.Errorf("%d bytes after the trailer", len(b)-at)
			}
			return out, nil
		}
		out = append(out, m)
	}
}

func moduleFolder(t *testing.T, contents ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, content := range contents {
		if err := os.WriteFile(fmt.Sprintf("%s/%02d-mod.ko", dir, i), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/readme", []byte("no module"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestInitrd(t *testing.T) {
	program := "a program of a length that is no multiple of four"
	var out bytes.Buffer
	if err := writeInitrd(&out, []byte(program), moduleFolder(t, "", "1", "22", "333", "4444")); err != nil {
		t.Fatal(err)
	}
	got, err := readArchive(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := []member{
		{"dev", 0o40755, 1, 0, ""}, {"proc", 0o40755, 1, 0, ""}, {"sys", 0o40755, 1, 0, ""}, {"modules", 0o40755, 1, 0, ""},
		{"dev/console", 0o20600, 1, 5<<8 | 1, ""}, // Documentation/admin-guide/devices.txt: 5, 1
		{"init", 0o100755, 1, 0, program},
		{"modules/00-mod.ko", 0o100644, 1, 0, ""}, {"modules/01-mod.ko", 0o100644, 1, 0, "1"}, {"modules/02-mod.ko", 0o100644, 1, 0, "22"},
		{"modules/03-mod.ko", 0o100644, 1, 0, "333"}, {"modules/04-mod.ko", 0o100644, 1, 0, "4444"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("archive\n%+v, want\n%+v", got, want)
	}
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		return // the reader above has read it
	}
	list := exec.Command(cpio, "-t", "--quiet")
	list.Stdin = &out
	text, err := list.CombinedOutput()
	var names []string
	for _, m := range want {
		names = append(names, m.name)
	}
	if err != nil || strings.TrimSpace(string(text)) != strings.Join(names, "\n") {
		t.Errorf("cpio reads %s, %v", text, err)
	}
}

// full is a disk with room for so many bytes.
type full struct{ room int }

var errFull = errors.New("no space left")

func (w *full) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestInitrdFails(t *testing.T) {
	modules := moduleFolder(t, "module")
	var whole bytes.Buffer
	if err := writeInitrd(&whole, []byte("init"), modules); err != nil {
		t.Fatal(err)
	}
	for room := range whole.Len() {
		if err := writeInitrd(&full{room}, []byte("init"), modules); !errors.Is(err, errFull) {
			t.Fatalf("with room for %d bytes of %d: %v", room, whole.Len(), err)
		}
	}
	if err := writeInitrd(&bytes.Buffer{}, []byte("init"), t.TempDir()); err == nil {
		t.Error("a machine without modules finds no disk")
	}
}
