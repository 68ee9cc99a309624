package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/internal/store/storetest"
	bolt "go.etcd.io/bbolt"
)

// manyVolumes is a store with volumes, snapshots and drives, and what it holds.
func manyVolumes(t *testing.T) (path string, volumes map[string]drivebay.VolumeRecord) {
	path, volumes = filled(t), map[string]drivebay.VolumeRecord{}
	b := open(t, path)
	for _, id := range []string{"v", "ekuznsbdagcs6r4lw32cvxd6um", "axermtt2noe3xvuw4gy3uvropu", "mjalmkne2noe3xvuw4gy3uvrop"} {
		volumes[id] = storetest.Volume(id)
		if err := b.PutVolume(volumes[id]); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, b)
	return path, volumes
}

// TestFlippedBits flips one bit of a store at a time. No record comes back as another one
// or under another id, none is missing without a word, and nothing ends the process.
func TestFlippedBits(t *testing.T) {
	path, volumes := manyVolumes(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var used []int // bytes that say something: three quarters of the file are zeroes
	for i, c := range content {
		if c != 0 {
			used = append(used, i)
		}
	}
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	dir := t.TempDir()
	for n := range 300 {
		at, bit := used[random.IntN(len(used))], random.IntN(8)
		flipped := bytes.Clone(content)
		flipped[at] ^= 1 << bit
		name := filepath.Join(dir, "f.db")
		for _, old := range must(filepath.Glob(name + "*"))(t) {
			_ = os.Remove(old)
		}
		if err := os.WriteFile(name, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := store.Open(name)
		if errors.Is(err, drivebay.ErrNoSupport) {
			continue // the bit was in the schema version
		}
		if err != nil {
			t.Fatalf("flip %d: byte %d, bit %d: %v", n, at, bit, err)
		}
		got, err := b.Volumes()
		if err != nil {
			t.Errorf("flip %d: byte %d, bit %d: %v", n, at, bit, err)
		}
		for id, r := range got {
			if want, is := volumes[id]; !is || !reflect.DeepEqual(r, want) {
				t.Errorf("flip %d: byte %d, bit %d: volume %q is another: %+v", n, at, bit, id, r)
			}
		}
		if len(got) < len(volumes) && len(b.Problems()) == 0 {
			t.Errorf("flip %d: byte %d, bit %d: %d volumes of %d, and no word", n, at, bit, len(got), len(volumes))
		}
		if _, err := b.Records(); err != nil {
			t.Error(err)
		}
		if _, err := b.Events(0, 0); err != nil {
			t.Error(err)
		}
		shut(t, b)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestWithoutSums: a store of an earlier version, whose records have no checksums, is
// read as it is, and has them from then on.
func TestWithoutSums(t *testing.T) {
	path, volumes := manyVolumes(t)
	raw(t, path, func(tx *bolt.Tx) error {
		for id, r := range volumes {
			v, err := json.Marshal(r)
			if err != nil {
				return err
			}
			if err := tx.Bucket([]byte("volumes")).Put([]byte(id), v); err != nil {
				return err
			}
		}
		return nil
	})
	b := open(t, path)
	if got, err := b.Volumes(); err != nil || !reflect.DeepEqual(got, volumes) || len(b.Problems()) > 0 {
		t.Errorf("%v, %v, %v", got, err, b.Problems())
	}
	shut(t, b)
	raw(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("volumes")).ForEach(func(k, v []byte) error {
			if !strings.Contains(string(v), `,"sum":"`) {
				t.Errorf("%s has no checksum", k)
			}
			var r drivebay.VolumeRecord
			if err := json.Unmarshal(v, &r); err != nil || !reflect.DeepEqual(r, volumes[string(k)]) {
				t.Errorf("an earlier version reads %s as %+v, %v", k, r, err)
			}
			return nil
		})
	})
}

// TestMisplacedRecord: a sound record under the key of another volume is left out.
func TestMisplacedRecord(t *testing.T) {
	path, volumes := manyVolumes(t)
	raw(t, path, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("volumes"))
		v, err := json.Marshal(volumes["v"])
		return errors.Join(err, b.Put([]byte("w"), bytes.Clone(b.Get([]byte("v")))), b.Put([]byte("x"), v))
	})
	b := open(t, path)
	defer shut(t, b)
	if got, err := b.Volumes(); err != nil || !reflect.DeepEqual(got, volumes) || len(b.Problems()) != 2 {
		t.Errorf("%v, %v, %v", got, err, b.Problems())
	}
}
