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
