package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// database is the bbolt file of a store. It reports when the file cannot be read or written,
// and makes it usable again.
type database struct {
	path string

	swap     sync.RWMutex // locked for writing while another file is opened
	db       *bolt.DB     // nil: no file can be opened
	file     *os.File
	readOnly bool  // db is open for reading only, or nil
	cause    error // why the file was not opened for writing
	unread   error // why the file was not opened at all; nil: it is open, or does not exist

	folderSynced atomic.Bool // the folder was synced since db was opened

	mu       sync.Mutex
	problems []string
	broken   error // the damage that was found while the file was in use
	health   writeState
}

// Problems describes what was lost: a file that was put aside, records that could not be
// read. An operator should see it; the store works on.
func (b *database) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.problems...)
}

func (b *database) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := fmt.Sprintf("store %s: ", b.path) + fmt.Sprintf(format, args...)
	if !slices.Contains(b.problems, text) {
		b.problems = append(b.problems, text)
	}
}

// Close closes the file.
func (b *database) Close() error {
	b.swap.RLock()
	defer b.swap.RUnlock()
	if b.db == nil {
		return nil
	}
	b.mu.Lock()
	closing := b.db.Close
	if b.broken != nil {
		closing = b.file.Close // a panic may have left bolt's locks held: its Close would wait for ever
	}
	b.mu.Unlock()
	if err := closing(); err != nil {
		return fmt.Errorf("store %s: close: %w", b.path, err)
	}
	return nil
}

// scan calls each for the entries of a bucket, from a key on, until each returns false. It
// moves an entry whose checksum is wrong, or for which each fails, into quarantine.
func (b *database) scan(name, from []byte, each func(k, v []byte) (more bool, err error)) error {
	bad := map[string]error{}
	bare := false
	err := b.view("read "+string(name), func(tx *bolt.Tx) error {
		bucket := tx.Bucket(name)
		if bucket == nil {
			return nil // a file of an earlier version, opened for reading only
		}
		c := bucket.Cursor()
		more := true
		for k, v := c.Seek(from); k != nil && more; k, v = c.Next() {
			sealed, err := unseal(k, v)
			if err == nil {
				more, err = each(k, v)
				bare = bare || err == nil && !sealed
			}
			if err != nil {
				bad[string(k)] = err
			}
		}
		return nil
	})
	if err == nil && len(bad) > 0 {
		b.quarantine(name, bad)
	}
	if err == nil && bare {
		b.sealAll(name)
	}
	return err
}

// sealAll adds checksums to the entries of an earlier version. A failure (the disk is
// full or read-only) is only noted: the entries are valid without them.
func (b *database) sealAll(name []byte) {
	err := b.update("add checksums", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(name)
		bare := map[string][]byte{}
		err := bucket.ForEach(func(k, v []byte) error {
			if sealed, err := unseal(k, v); err == nil && !sealed {
				bare[string(k)] = bytes.Clone(v)
			}
			return nil
		})
		for k, v := range bare {
			if err == nil {
				err = bucket.Put([]byte(k), seal([]byte(k), v))
			}
		}
		return err
	})
	if err != nil {
		b.note("%v", err)
	}
}

// quarantine moves entries into the quarantine bucket. A failure (a full disk) does not
// withhold the good entries: the next scan finds and skips the bad ones again.
func (b *database) quarantine(name []byte, bad map[string]error) {
	err := b.update("quarantine", func(tx *bolt.Tx) error {
		from, to := tx.Bucket(name), tx.Bucket(quarantineBucket)
		for k := range bad {
			if err := to.Put([]byte(string(name)+"/"+k), append([]byte(nil), from.Get([]byte(k))...)); err != nil {
				return err
			}
			if err := from.Delete([]byte(k)); err != nil {
				return err
			}
		}
		return nil
	})
	for k, why := range bad {
		if string(name) == string(eventsBucket) {
			k = fmt.Sprint(binary.BigEndian.Uint64([]byte(k)))
		}
		b.note("%s entry %q is damaged and left out: %v", name, k, why)
	}
	if err != nil {
		b.note("%v", err)
	}
}

// view runs a read transaction. A store without a file is empty; one whose file cannot be
// opened returns why.
func (b *database) view(op string, f func(*bolt.Tx) error) error {
	b.swap.RLock()
	defer b.swap.RUnlock()
	if b.db == nil {
		if b.unread != nil {
			return fmt.Errorf("store %s: %s: %w", b.path, op, b.unread)
		}
		return nil
	}
	return b.guard(op, func() error { return b.db.View(f) })
}

// update runs a write transaction, if the open file is still the one at the path.
func (b *database) update(op string, f func(*bolt.Tx) error) error {
	b.swap.RLock()
	defer b.swap.RUnlock()
	b.beginWrite()
	err := b.guard(op, func() error {
		if b.readOnly {
			return b.cause
		}
		if err := b.inPlace(); err != nil {
			return err
		}
		if err := b.syncFolder(); err != nil {
			return fmt.Errorf("sync the folder: %w", err)
		}
		return b.db.Update(f)
	})
	b.endWrite(errors.Unwrap(err))
	return err
}

// guard runs f, and refuses all calls after damage to the file was found.
func (b *database) guard(op string, f func() error) error {
	b.mu.Lock()
	err := b.broken
	b.mu.Unlock()
	if err == nil {
		err = guard(f)
	}
	if errors.Is(err, errDamaged) {
		b.mu.Lock()
		b.broken = err
		b.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("store %s: %s: %w", b.path, op, err)
	}
	return nil
}

var errDamaged = errors.New("the file is damaged")

// guard runs f and returns errors where a damaged memory-mapped file would end the
// process: bbolt panics on impossible pages, and the kernel raises SIGBUS for pages that
// the disk cannot read or the file no longer has.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errDamaged, r)
		}
	}()
	return f()
}
