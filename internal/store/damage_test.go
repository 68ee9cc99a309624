package store_test

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/internal/store/storetest"
	bolt "go.etcd.io/bbolt"
)

// raw opens the file as bolt would, to do what no program of ours does.
func raw(t *testing.T, path string, f func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedEntriesAreLeftOut(t *testing.T) {
	path := filled(t)
	raw(t, path, func(tx *bolt.Tx) error {
		return errors.Join(
			tx.Bucket([]byte("records")).Put([]byte("broken"), []byte(`{"drive":{"id":`)),
			tx.Bucket([]byte("records")).Put([]byte("odd"), []byte(`{"usage":"NO_SUCH_USAGE"}`)),
			tx.Bucket([]byte("volumes")).Put([]byte("broken"), []byte(`{"volume":{"csiStatus":"NONE_SUCH"}}`)),
			tx.Bucket([]byte("snapshots")).Put([]byte("broken"), []byte(`[`)),
			tx.Bucket([]byte("events")).Put([]byte{0, 0, 0, 0, 0, 0, 0, 2}, []byte(`no event`)),
			tx.Bucket([]byte("events")).Put([]byte{0, 0, 0, 0, 0, 0, 0, 9}, []byte(`{"seq":4}`)),
		)
	})
	b := open(t, path)
	for range 2 {
		if r, err := b.Records(); err != nil || len(r) != 2 {
			t.Errorf("records %v, error %v", r, err)
		}
		if e, err := b.Events(0, 0); err != nil || len(e) != 2 || e[1].Seq != 3 {
			t.Errorf("events %v, error %v", e, err)
		}
		if v, err := b.Volumes(); err != nil || len(v) != 1 {
			t.Errorf("volumes %v, error %v", v, err)
		}
		if v, err := b.VolumeSnapshots(); err != nil || len(v) != 0 {
			t.Errorf("snapshots %v, error %v", v, err)
		}
		if p := b.Problems(); len(p) != 6 {
			t.Errorf("problems: %q", p)
		}
	}
	shut(t, b)
	raw(t, path, func(tx *bolt.Tx) error {
		for _, key := range []string{"records/broken", "records/odd", "volumes/broken", "snapshots/broken", "events/\x00\x00\x00\x00\x00\x00\x00\x02"} {
			if tx.Bucket([]byte("quarantine")).Get([]byte(key)) == nil {
				t.Errorf("%q is not in quarantine", key)
			}
		}
		if tx.Bucket([]byte("records")).Get([]byte("broken")) != nil {
			t.Error("the damaged record is still among the others")
		}
		return nil
	})
}

// TestOlderFile: a file from before there were volumes.
func TestOlderFile(t *testing.T) {
	path := filled(t)
	raw(t, path, func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket([]byte("volumes")), tx.DeleteBucket([]byte("snapshots")))
	})
	b := open(t, path)
	defer shut(t, b)
	if err := b.PutVolume(storetest.Volume("v")); err != nil {
		t.Error(err)
	}
	if v, err := b.Volumes(); err != nil || len(v) != 1 {
		t.Errorf("volumes %v, error %v", v, err)
	}
	if r, err := b.Records(); err != nil || len(r) != 2 || len(b.Problems()) != 0 {
		t.Errorf("records %v, error %v, problems %v", r, err, b.Problems())
	}
}

func TestDamagedFileIsPutAside(t *testing.T) {
	cases := map[string]func([]byte) []byte{
		"no store at all":   func([]byte) []byte { return bytes.Repeat([]byte("text "), 5000) },
		"short":             func(b []byte) []byte { return b[:100] },
		"first page only":   func(b []byte) []byte { return b[:os.Getpagesize()] },
		"tail cut off":      func(b []byte) []byte { return b[:3*os.Getpagesize()] },
		"zeroes":            func(b []byte) []byte { return make([]byte, len(b)) },
		"pages overwritten": func(b []byte) []byte { copy(b[2*os.Getpagesize():], bytes.Repeat([]byte{0xff}, len(b))); return b },
		"pages zeroed":      func(b []byte) []byte { clear(b[2*os.Getpagesize():]); return b },
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content = damage(content)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			b := open(t, path)
			defer shut(t, b)
			put(t, b, "new")
			if r, err := b.Records(); err != nil || len(r) != 1 {
				t.Errorf("the new store: %v, error %v", r, err)
			}
			if p := b.Problems(); len(p) != 1 || !strings.Contains(p[0], "put aside") {
				t.Errorf("problems: %q", p)
			}
			aside, _ := filepath.Glob(path + ".corrupt-*")
			if len(aside) != 1 {
				t.Fatalf("put aside: %v", aside)
			}
			if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, content) {
				t.Errorf("what was put aside was changed (%v)", err)
			}
		})
	}
}

// TestFullDisk lets the file grow no further, which the kernel reports on the
// same calls as a full disk.
func TestFullDisk(t *testing.T) {
	path := filled(t)
	b := open(t, path)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	low := limit
	low.Cur = uint64(st.Size())
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		t.Fatal(err)
	}
	big := storetest.Record("big")
	big.Drive.Model = strings.Repeat("x", 1<<20)
	full := b.PutRecords(map[string]drivebay.Record{"a": big})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if full == nil {
		t.Fatal("a megabyte went where there is no room")
	}
	put(t, b, "c")
	shut(t, b)

	b = open(t, path)
	defer shut(t, b)
	want := map[string]drivebay.Record{"a": storetest.Record("a"), "b": storetest.Record("b"), "c": storetest.Record("c")}
	if got, err := b.Records(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after the disk was full: %v, error %v", got, err)
	}
	if p := b.Problems(); len(p) != 0 {
		t.Errorf("problems: %v", p)
	}
}

// TestCutWhileOpen takes pages from under an open store, as a disk that stops
// reading does: an error, and the process lives.
func TestCutWhileOpen(t *testing.T) {
	path := filled(t)
	b := open(t, path)
	if err := os.Truncate(path, int64(2*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.Records(); err == nil {
			t.Error("records were read from a file without its pages")
		}
		if err := b.PutRecords(map[string]drivebay.Record{"x": storetest.Record("x")}); err == nil {
			t.Error("a record was written to a file without its pages")
		}
	}
	shut(t, b)
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("no store"), uint16(0))
	f.Add([]byte{0xff, 0xff, 0xff}, uint16(8200))
	f.Add(make([]byte, 4096), uint16(12288))
	f.Fuzz(func(t *testing.T, patch []byte, at uint16) {
		path := filepath.Join(t.TempDir(), "f.db")
		b := open(t, path)
		put(t, b, "a")
		shut(t, b)
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, werr := file.WriteAt(patch, int64(at))
		if err := errors.Join(werr, file.Close()); err != nil {
			t.Fatal(err)
		}
		if b, err = store.Open(path); err != nil {
			if errors.Is(err, drivebay.ErrNoSupport) {
				return // the patch hit the schema version
			}
			t.Fatalf("a damaged store stops the daemon: %v", err)
		}
		b.Records()
		b.Events(0, 0)
		put(t, b, "b")
		shut(t, b)
	})
}

// TestPowerCut opens copies of a store in use, as a machine finds it that lost
// its power: sound after every commit, and never taken for damaged.
func TestPowerCut(t *testing.T) {
	dir := t.TempDir()
	b := open(t, filepath.Join(dir, "drivebay.db"))
	defer shut(t, b)
	for i := range 120 {
		r := storetest.Record("r")
		r.Drive.Model = strings.Repeat("x", i*i*31%40_000)
		id := string(rune('a' + i%17))
		seq := uint64(i*200 + 1)
		err := errors.Join(b.PutRecords(map[string]drivebay.Record{id: r}), b.AppendEvents([]drivebay.Event{{Seq: seq}, {Seq: seq + 1}}))
		if i%5 == 0 {
			err = errors.Join(err, b.DeleteRecords([]string{"a", "f", "m"}))
		}
		if err != nil {
			t.Fatal(err)
		}
		if i%12 != 0 {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, "drivebay.db"))
		copied := filepath.Join(dir, "copy.db")
		if err := errors.Join(err, os.WriteFile(copied, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		c := open(t, copied)
		if p := c.Problems(); len(p) != 0 {
			t.Fatalf("round %d: %v", i, p)
		}
		if last, err := c.LastEvent(); last != seq+1 || err != nil {
			t.Errorf("round %d: last event %d, error %v", i, last, err)
		}
		shut(t, c)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filled(t)
	raw(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte("99")) })
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = store.Open(path); !errors.Is(err, drivebay.ErrNoSupport) || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("error %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a store of a newer version was written to (%v)", err)
	}
	b := store.OpenReadOnly(path, syscall.EROFS) // on a disk that takes no writes
	if all, err := b.Volumes(); !errors.Is(err, drivebay.ErrNoSupport) {
		t.Errorf("a store of a newer version was read: %d volumes, %v", len(all), err)
	}
	shut(t, b)
}

// TestOlderSchemaIsRaised: a file that this version has opened is of its schema, so that an older version refuses it. That one would drop
// what it does not know from each record that it writes.
func TestOlderSchemaIsRaised(t *testing.T) {
	path := filled(t)
	var now string
	raw(t, path, func(tx *bolt.Tx) error {
		now = string(tx.Bucket([]byte("meta")).Get([]byte("schema")))
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte("0"))
	})
	shut(t, open(t, path))
	raw(t, path, func(tx *bolt.Tx) error {
		if is := string(tx.Bucket([]byte("meta")).Get([]byte("schema"))); is != now || now == "" {
			t.Errorf("the schema is %q, want %q", is, now)
		}
		return nil
	})
}
