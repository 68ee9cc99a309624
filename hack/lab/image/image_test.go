package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const patience = 30 * time.Second

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func TestKey(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"c", "ab"}, {"1:a"}, {"a1:b"}, {"a", "b"}} {
		k := Key(parts...)
		if other, taken := seen[k]; taken || len(k) != 16 || k != Key(parts...) {
			t.Errorf("%q and %q are both %s", parts, other, k)
		}
		seen[k] = parts
	}
}

func TestCache(t *testing.T) {
	t.Setenv("DRIVEBAY_LAB_CACHE", "relative")
	if dir, err := Cache(); err != nil || !filepath.IsAbs(dir) || filepath.Base(dir) != "relative" {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv("DRIVEBAY_LAB_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "/somebody's/cache")
	if dir, err := Cache(); err != nil || dir != "/somebody's/cache/drivebay-lab" {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if dir, err := Cache(); err == nil || !strings.Contains(err.Error(), "DRIVEBAY_LAB_CACHE") {
		t.Errorf("with no home: %q, %v", dir, err)
	}
}

func TestMissing(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("PATH", empty)
	missing := Missing()
	for _, tool := range Tools {
		// A few are where an ordinary user's PATH does not lead but the lab looks.
		elsewhere := exists("/usr/sbin/"+tool.Program) || exists("/sbin/"+tool.Program)
		if slices.Contains(missing, tool.Package) == elsewhere {
			t.Errorf("%s is missing: %v, is it below sbin: %v", tool.Program, !elsewhere, elsewhere)
		}
	}
	for _, tool := range Tools {
		if err := os.WriteFile(filepath.Join(empty, tool.Program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if missing := Missing(); len(missing) != 0 {
		t.Errorf("missing although they are there: %v", missing)
	}
}

// TestMakeSaysWhatIsMissing before it touches anything.
func TestMakeSaysWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	missing := Missing()
	if len(missing) == 0 {
		t.Fatal("with an empty PATH nothing is missing: no machine has QEMU below sbin")
	}
	cache := filepath.Join(t.TempDir(), "cache")
	_, err := Make(t.Context(), cache, "/no/guest", io.Discard)
	if err == nil || exists(cache) {
		t.Fatalf("it began: %v", err)
	}
	for _, p := range missing {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%v lacks %s", err, p)
		}
	}
}

func TestLock(t *testing.T) {
	cache := t.TempDir()
	var log bytes.Buffer
	unlock, err := Lock(t.Context(), cache, "image", &log)
	if err != nil {
		t.Fatal(err)
	}
	if log.Len() != 0 {
		t.Errorf("nobody to wait for, and it said %q", log.String())
	}
	other, err := Lock(t.Context(), cache, "other thing", io.Discard) // a lock of its own
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no patience")
	time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
	if _, err := Lock(ctx, cache, "image", &log); !errors.Is(err, why) {
		t.Errorf("a second holder: %v", err)
	}
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "image") {
		t.Errorf("while it waited it said %q", said)
	}
	got := make(chan error, 1)
	go func() {
		again, err := Lock(t.Context(), cache, "image", io.Discard)
		if err == nil {
			again()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("two hold it: %v", err)
	case <-time.After(150 * time.Millisecond):
	}
	unlock()
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it is free, and nobody gets it")
	}
}

func TestLockKeepsApart(t *testing.T) {
	cache := t.TempDir()
	var inside, most atomic.Int32
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			unlock, err := Lock(t.Context(), cache, "image", io.Discard)
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if n := inside.Add(1); n > 1 {
				most.Store(n)
			}
			time.Sleep(2 * time.Millisecond)
			inside.Add(-1)
		})
	}
	wg.Wait()
	if most.Load() > 1 {
		t.Error("two were inside at once")
	}
}

func TestLockNowhere(t *testing.T) {
	if _, err := Lock(t.Context(), "/no/such/folder", "image", io.Discard); err == nil {
		t.Error("locked what is not there")
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for name, stale := range map[string]bool{"state-old": true, "state-new": false, "base-old": true} {
		if err := os.MkdirAll(filepath.Join(dir, name, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
		if stale {
			if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	Prune(dir, "state-*", 3*time.Hour)
	if got := names(t, dir); !slices.Equal(got, []string{"base-old", "state-new", "state-old"}) {
		t.Errorf("too early, left %v", got)
	}
	if err := touch(filepath.Join(dir, "state-new")); err != nil {
		t.Fatal(err)
	}
	Prune(dir, "state-*", time.Hour)
	if got := names(t, dir); !slices.Equal(got, []string{"base-old", "state-new"}) {
		t.Errorf("left %v", got)
	}
	if err := touch(filepath.Join(dir, "base-old")); err != nil {
		t.Fatal(err)
	}
	Prune(dir, "*", time.Hour)
	if got := names(t, dir); !slices.Equal(got, []string{"base-old", "state-new"}) {
		t.Errorf("what was used is gone, left %v", got)
	}
}

func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	put := func(text string, then error) error {
		return writeWhole(file, func(w io.Writer) error {
			io.WriteString(w, text)
			if now, err := os.ReadFile(file); err == nil && string(now) != "first" {
				t.Errorf("while it is written the file is %q", now)
			}
			return then
		})
	}
	broken := errors.New("broken")
	if err := put("half", broken); !errors.Is(err, broken) || len(names(t, dir)) != 0 {
		t.Errorf("%v, left %v", err, names(t, dir))
	}
	if err := put("first", nil); err != nil {
		t.Fatal(err)
	}
	if err := put("half", broken); !errors.Is(err, broken) {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "first" || len(names(t, dir)) != 1 {
		t.Errorf("%q, %v, left %v", b, err, names(t, dir))
	}
	if err := put("second", nil); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "second" || len(names(t, dir)) != 1 {
		t.Errorf("%q, %v, left %v", b, err, names(t, dir))
	}
}

// TestWithGuest: a new program makes a new initial file system and nothing else.
func TestWithGuest(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base-1")
	if err := os.MkdirAll(base+"/boot-modules", 0o755); err != nil {
		t.Fatal(err)
	}
	guest := filepath.Join(t.TempDir(), "guest")
	for _, f := range []struct{ name, content string }{{base + "/boot-modules/00-m.ko", "module"}, {guest, "one"}} {
		if err := os.WriteFile(f.name, []byte(f.content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	one, err := withGuest(base, guest)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(one.Initrd)
	if err != nil {
		t.Fatal(err)
	}
	members, err := readArchive(content)
	if err != nil || !slices.ContainsFunc(members, func(m member) bool { return m.name == "init" && m.content == "one" }) {
		t.Errorf("archive %+v, %v", members, err)
	}
	if one.Kernel != base+"/vmlinux" || one.Root != base+"/root.img" {
		t.Errorf("image %+v", one)
	}
	if err := os.Truncate(one.Initrd, 0); err != nil { // made again it would have something in it
		t.Fatal(err)
	}
	long := time.Now().Add(-30 * 24 * time.Hour)
	for _, name := range []string{base, one.Initrd} {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if same, err := withGuest(base, guest); err != nil || *same != *one {
		t.Errorf("again %+v, %v", same, err)
	}
	for _, name := range []string{base, one.Initrd} {
		if st, err := os.Stat(name); err != nil || time.Since(st.ModTime()) > time.Hour {
			t.Errorf("%s is in use, and it is from %v", name, st.ModTime())
		}
	}
	if st, err := os.Stat(one.Initrd); err != nil || st.Size() != 0 {
		t.Errorf("it was made again: %v, %v", st, err)
	}
	if err := os.WriteFile(guest, []byte("two"), 0o755); err != nil {
		t.Fatal(err)
	}
	two, err := withGuest(base, guest)
	if err != nil || two.ID == one.ID || two.Initrd == one.Initrd || two.Root != one.Root || !exists(two.Initrd) {
		t.Errorf("with another program %+v, %v", two, err)
	}
	if _, err := withGuest(base, guest+".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with none: %v", err)
	}
}
