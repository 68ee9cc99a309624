package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	bolt "go.etcd.io/bbolt"
)

var (
	metaBucket       = []byte("meta")
	recordsBucket    = []byte("records")
	eventsBucket     = []byte("events")
	quarantineBucket = []byte("quarantine") // entries that could not be decoded, under "bucket/key"
)

// Bolt is a store in one bbolt file.
type Bolt struct {
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
	health   condition
}

// Problems describes what was lost: a file that was put aside, records that could not be
// read. An operator should see it; the store works on.
func (b *Bolt) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.problems...)
}

func (b *Bolt) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := fmt.Sprintf("store %s: ", b.path) + fmt.Sprintf(format, args...)
	if !slices.Contains(b.problems, text) {
		b.problems = append(b.problems, text)
	}
}

// Records returns the records of all drives. It moves a record that does not decode into
// quarantine and returns the others.
func (b *Bolt) Records() (map[string]drivebay.Record, error) {
	return entries[drivebay.Record](b, recordsBucket)
}

// PutRecords stores records in one transaction.
func (b *Bolt) PutRecords(records map[string]drivebay.Record) error {
	encoded, err := encodeRecords(records)
	if err != nil || len(encoded) == 0 {
		return err
	}
	return b.update("write records", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(recordsBucket)
		for id, v := range encoded {
			if err := bucket.Put([]byte(id), seal([]byte(id), v)); err != nil {
				return fmt.Errorf("drive %s: %w", id, err)
			}
		}
		return nil
	})
}

// DeleteRecords deletes records of drives; a record that does not exist is no error.
func (b *Bolt) DeleteRecords(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return b.update("delete records", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(recordsBucket)
		for _, id := range ids {
			if err := bucket.Delete([]byte(id)); err != nil {
				return fmt.Errorf("drive %s: %w", id, err)
			}
		}
		return nil
	})
}

// AppendEvents stores events under their numbers and deletes those that are too old, in
// one transaction. An event that is stored twice is stored once.
func (b *Bolt) AppendEvents(events []drivebay.Event) error {
	encoded, err := encodeEvents(events)
	if err != nil || len(encoded) == 0 {
		return err
	}
	return b.update("write events", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(eventsBucket)
		last := bucket.Sequence()
		for i, v := range encoded {
			key := eventKey(events[i].Seq)
			if err := bucket.Put(key, seal(key, v)); err != nil {
				return fmt.Errorf("event %d: %w", events[i].Seq, err)
			}
			last = max(last, events[i].Seq)
		}
		if err := trim(bucket, oldestKept(last)); err != nil {
			return err
		}
		// The bucket's sequence survives the loss of the newest event: no number is
		// given twice.
		return bucket.SetSequence(last)
	})
}

func trim(bucket *bolt.Bucket, oldest uint64) error {
	c := bucket.Cursor()
	for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k) < oldest; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return fmt.Errorf("drop old events: %w", err)
		}
	}
	return nil
}

// Events returns at most limit events newer than after, oldest first; a limit of
// 0 means all.
func (b *Bolt) Events(after uint64, limit int) ([]drivebay.Event, error) {
	if after+1 == 0 {
		return nil, nil
	}
	var out []drivebay.Event
	err := b.scan(eventsBucket, eventKey(after+1), func(k, v []byte) (bool, error) {
		var e drivebay.Event
		if err := json.Unmarshal(v, &e); err != nil {
			return true, err
		}
		if !bytes.Equal(k, eventKey(e.Seq)) {
			return true, fmt.Errorf("event %d is not where it belongs", e.Seq)
		}
		out = append(out, e)
		return limit <= 0 || len(out) < limit, nil
	})
	return out, err
}

// LastEvent returns the number of the newest event ever stored.
func (b *Bolt) LastEvent() (last uint64, err error) {
	err = b.view("read events", func(tx *bolt.Tx) error {
		if bucket := tx.Bucket(eventsBucket); bucket != nil {
			last = bucket.Sequence()
		}
		return nil
	})
	return last, err
}

// Close closes the file.
func (b *Bolt) Close() error {
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
func (b *Bolt) scan(name, from []byte, each func(k, v []byte) (more bool, err error)) error {
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
func (b *Bolt) sealAll(name []byte) {
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
func (b *Bolt) quarantine(name []byte, bad map[string]error) {
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
func (b *Bolt) view(op string, f func(*bolt.Tx) error) error {
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
func (b *Bolt) update(op string, f func(*bolt.Tx) error) error {
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
func (b *Bolt) guard(op string, f func() error) error {
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

func eventKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }
