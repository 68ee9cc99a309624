package secretfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drivebay/drivebay"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{"good": {" hunter2\n", 0o600}, "owner": {"hunter2", 0o400}, "group": {"hunter2", 0o640}, "others": {"hunter2", 0o604}, "written": {"hunter2", 0o620}, "empty": {"\n", 0o600}, "large": {strings.Repeat("x", 64<<10+1), 0o600}} {
		if err := os.WriteFile(path(name), []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), f.mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(path("pipe"), 0o600), os.Symlink("group", path("link")), os.Symlink("good", path("link-good"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"good": "hunter2", "owner": "hunter2", "link-good": "hunter2", "group": "chmod 600", "others": "chmod 600", "written": "chmod 600", "link": "chmod 600", "empty": "empty",
		"large": "larger than", "pipe": "not a regular file", ".": "not a regular file", "absent": "no such file"} {
		got, err := Secret(path(name), strings.NewReader("not this"))
		if want == "hunter2" {
			if got != want || err != nil {
				t.Errorf("%s: %q %v", name, got, err)
			}
		} else if err == nil || got != "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q %v, want %s", name, got, err, want)
		}
	}
	if got, err := Secret("-", strings.NewReader("hunter2\r\n")); got != "hunter2" || err != nil {
		t.Errorf("standard input: %q %v", got, err)
	}
	if _, err := Bytes("-", strings.NewReader(strings.Repeat("x", 64<<10+1))); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("without an end: %v", err)
	}
	if got, err := Bytes(path("good"), nil); string(got) != " hunter2\n" || err != nil {
		t.Errorf("byte for byte: %q %v", got, err)
	}
}
