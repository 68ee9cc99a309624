//go:build root

package host

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRootMountCache: the cached table is used only while no process has changed a mount.
func TestRootMountCache(t *testing.T) {
	w, root := worker(t), folders(t, "fs", "bind")
	fs, bind := filepath.Join(root, "fs"), filepath.Join(root, "bind")
	table := func() []Mount {
		t.Helper()
		all, err := w.Mounts(t.Context())
		must(t, err)
		return all
	}
	at := func(target string) (out []string) {
		for _, m := range table() {
			if m.Target == target {
				out = append(out, m.FS+" "+strings.Split(m.Opts, ",")[0])
			}
		}
		return out
	}
	shows := func(what, target string, want ...string) {
		t.Helper()
		if got := at(target); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	for round := range 50 { // without a pause: a change is seen at once
		shows("before", fs)
		must(t, unix.Mount("none", fs, "tmpfs", 0, ""))
		shows("mounted", fs, "tmpfs rw")
		must(t, unix.Mount(fs, bind, "", unix.MS_BIND, ""))
		shows("bound", bind, "tmpfs rw")
		must(t, unix.Mount("", bind, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		shows("bound read-only", bind, "tmpfs ro")
		must(t, unix.Mount("none", fs, "tmpfs", 0, ""))
		shows("mounted over", fs, "tmpfs rw", "tmpfs rw")
		must(t, unix.Unmount(fs, 0))
		must(t, unix.Unmount(bind, unix.MNT_DETACH))
		must(t, unix.Mount("", fs, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		shows("unmounted", bind)
		shows("remounted", fs, "tmpfs ro")
		must(t, unix.Unmount(fs, 0))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	// Other tests may mount something meanwhile: one of several tries has to find the table as it was.
	same := func(pause time.Duration) (n int) {
		for range 20 {
			a := table()
			time.Sleep(pause)
			if b := table(); &a[0] == &b[0] {
				n++
			}
		}
		return n
	}
	if n := same(0); n == 0 {
		t.Error("the table is read each time")
	}
	w.(*real).cache.at = time.Now().Add(-mountCacheAge)
	if n := same(0); n == 0 {
		t.Error("an old table ends the cache")
	}
	a := table()
	w.(*real).cache.at = time.Now().Add(-mountCacheAge)
	if b := table(); &a[0] == &b[0] && w.(*real).mounts.name == "" {
		t.Error("a table is used for too long")
	}
}

func BenchmarkMountsUnchanged(b *testing.B) {
	w, err := Real("/")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.Mounts(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
