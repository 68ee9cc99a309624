package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/internal/store/storetest"
)

// failing checks what a store says of itself; "" wants that it says nothing.
func failing(t *testing.T, b *store.Bolt, want string) {
	t.Helper()
	err := b.Failing()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("failing: %v, want %q", err, want)
	}
}

// TestRemovedFile: a file that is removed while the store is open is a failure of the store,
// takes no writes that would be lost with the process, and is written anew.
func TestRemovedFile(t *testing.T) {
	for _, how := range []string{"file", "folder", "renamed and put back", "replaced", "replaced by a folder"} {
		t.Run(how, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "drivebay.db")
			b := open(t, path)
			defer shut(t, b)
			put(t, b, "a")
			b.Check()
			failing(t, b, "")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			switch how {
			case "file":
				must(os.Remove(path))
			case "folder":
				must(os.RemoveAll(filepath.Dir(path)))
			case "renamed and put back":
				must(os.Rename(path, path+".old"))
			case "replaced":
				must(os.WriteFile(path+".other", []byte("a backup"), 0o600))
				must(os.Rename(path+".other", path))
			default:
				must(os.Remove(path))
				must(os.Mkdir(path, 0o700))
			}
			want := "removed"
			if strings.HasPrefix(how, "replaced") {
				want = "another file is in its place"
			}
			if err := b.PutVolume(storetest.Volume("v")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a write that is lost with the process: %v, want %q", err, want)
			}
			b.Check()
			failing(t, b, want)
			defer store.MissingTime(store.MissingTime(0))
			switch {
			case how == "renamed and put back":
				must(os.Rename(path+".old", path))
			case how == "replaced":
				b.Check()
				failing(t, b, want)
				if text, err := os.ReadFile(path); err != nil || string(text) != "a backup" {
					t.Errorf("the other file was changed: %q, %v", text, err)
				}
				must(os.Remove(path))
			case how == "replaced by a folder":
				must(os.Remove(path))
			}
			b.Check()
			failing(t, b, "")
			must(b.PutVolume(storetest.Volume("v")))
			if _, err := os.Stat(path + ".new"); err == nil {
				t.Error("the copy is left")
			}
			shut(t, b)
			next := open(t, path)
			defer shut(t, next)
			records, err := next.Records()
			must(err)
			volumes, err := next.Volumes()
			must(err)
			if len(records) != 1 || len(volumes) != 1 {
				t.Errorf("written anew: %d records, %d volumes, want 1 and 1", len(records), len(volumes))
			}
		})
	}
}

// TestHangingWrite: a write that does not end is a failure of the store, and asking for it
// waits for nothing.
func TestHangingWrite(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "drivebay.db"))
	defer shut(t, b)
	b.Hang(time.Now().Add(-time.Minute))
	failing(t, b, "has not ended")
	b.Hang(time.Time{})
	failing(t, b, "")
}

// TestFailedWrite: a write that fails is a failure of the store until one goes well.
func TestFailedWrite(t *testing.T) {
	b := open(t, filled(t))
	defer shut(t, b)
	b.Fail(syscall.ENOSPC)
	failing(t, b, "no space left")
	b.Check() // writes
	failing(t, b, "")
	b.Fail(syscall.EIO)
	put(t, b, "c")
	failing(t, b, "")
}

// TestRemovedFileCopyFails: a copy of a removed file that is incomplete or damaged never
// becomes the store, and the next copy that succeeds does.
func TestRemovedFileCopyFails(t *testing.T) {
	for name, spoil := range map[string]func(content []byte) []byte{
		"the copy ends early":   func(content []byte) []byte { return content[:3*os.Getpagesize()] },
		"the copy is damaged":   func(content []byte) []byte { clear(content[2*os.Getpagesize():]); return content },
		"the file is undamaged": func(content []byte) []byte { return content },
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			b := open(t, path)
			defer shut(t, b)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			content, err := os.ReadFile(path)
			must(err)
			must(os.Rename(path, path+".old")) // bolt still has this file open
			spoiled := spoil(append([]byte(nil), content...))
			must(os.WriteFile(path+".old", spoiled, 0o600))
			defer store.MissingTime(store.MissingTime(0))
			if string(spoiled) != string(content) {
				for range 2 {
					b.Check()
					failing(t, b, "write the removed file again")
					for _, file := range []string{path, path + ".new"} {
						if _, err := os.Stat(file); err == nil {
							t.Errorf("%s exists after a copy that failed", filepath.Base(file))
						}
					}
				}
				must(os.WriteFile(path+".old", content, 0o600))
			}
			b.Check()
			failing(t, b, "")
			put(t, b, "c")
			if records, err := b.Records(); err != nil || len(records) != 3 {
				t.Errorf("%d records, %v, want 3", len(records), err)
			}
		})
	}
}

// TestRemovedFileReadOnly: a store that was opened for reading takes writes again after its
// removed file was written anew.
func TestRemovedFileReadOnly(t *testing.T) {
	path := filled(t)
	b := open(t, path)
	defer shut(t, b)
	b.ReadOnly(syscall.EROFS)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	defer store.MissingTime(store.MissingTime(0))
	b.Check()
	failing(t, b, "")
	put(t, b, "c")
}

// TestUnreadableFile: a store whose file cannot be opened is not an empty store.
func TestUnreadableFile(t *testing.T) {
	path := filled(t)
	if err := os.Truncate(path, 3*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	for path, unread := range map[string]bool{path: true, path + ".missing": false} {
		b := store.OpenReadOnly(path, syscall.EROFS)
		for what, read := range map[string]func() error{
			"records": func() error { _, err := b.Records(); return err }, "volumes": func() error { _, err := b.Volumes(); return err },
			"last event": func() error { _, err := b.LastEvent(); return err }, "events": func() error { _, err := b.Events(0, 0); return err }} {
			if err := read(); (err != nil) != unread {
				t.Errorf("%s of %s: %v", what, filepath.Base(path), err)
			}
		}
		shut(t, b)
	}
}
