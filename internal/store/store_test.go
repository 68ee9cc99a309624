package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/internal/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store { return store.Memory() })
}

func TestBolt(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return open(t, filepath.Join(t.TempDir(), "state", "drivebay.db")) })
}

func open(t *testing.T, path string) *store.Bolt {
	t.Helper()
	b, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// filled is a closed store with two records and some events in it.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "drivebay.db")
	b := open(t, path)
	put(t, b, "a")
	put(t, b, "b")
	if err := b.PutVolume(storetest.Volume("v")); err != nil {
		t.Fatal(err)
	}
	if err := b.AppendEvents([]drivebay.Event{{Seq: 1, Cause: "one"}, {Seq: 2, Cause: "two"}, {Seq: 3, Cause: "three"}}); err != nil {
		t.Fatal(err)
	}
	shut(t, b)
	return path
}

func put(t *testing.T, b *store.Bolt, id string) {
	t.Helper()
	if err := b.PutRecords(map[string]drivebay.Record{id: storetest.Record(id)}); err != nil {
		t.Fatal(err)
	}
}

func shut(t *testing.T, b *store.Bolt) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReopen(t *testing.T) {
	b := open(t, filled(t))
	defer shut(t, b)
	records, err := b.Records()
	if err != nil || !reflect.DeepEqual(records, map[string]drivebay.Record{"a": storetest.Record("a"), "b": storetest.Record("b")}) {
		t.Errorf("records %v, error %v", records, err)
	}
	if last, err := b.LastEvent(); last != 3 || err != nil {
		t.Errorf("last event %d, error %v", last, err)
	}
	if p := b.Problems(); len(p) != 0 {
		t.Errorf("problems of a sound store: %v", p)
	}
}

func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "drivebay.db")
	b := open(t, path)
	shut(t, b)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	defer shut(t, open(t, path))
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		st, err := os.Stat(name)
		if err != nil || st.Mode() != want {
			t.Errorf("%s: mode %v, want %v (%v)", name, st.Mode(), want, err)
		}
	}
}

func TestHeldByAnother(t *testing.T) {
	path := filled(t)
	defer shut(t, open(t, path))
	_, err := store.Open(path)
	if !errors.Is(err, drivebay.ErrBusy) || !strings.Contains(err.Error(), "another daemon holds it") {
		t.Errorf("error %v", err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/full", dir, filepath.Join(blocked, "drivebay.db")} {
		if b, err := store.Open(path); err == nil {
			t.Errorf("%s was opened", path)
			shut(t, b)
		}
	}
}

func TestClosed(t *testing.T) {
	b := open(t, filled(t))
	shut(t, b)
	if _, err := b.Records(); err == nil {
		t.Error("a closed store answers")
	}
	shut(t, b)
}
