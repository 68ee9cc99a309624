package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/drivebay/drivebay"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// schema is the version of the content of the buckets. The daemon does not open a file
// of a newer version.
const schema = 1

var schemaKey = []byte("schema")

// lockWait is how long Open waits for a file that another process has locked.
const lockWait = 2 * time.Second

// Open opens or makes the store at path. It renames a damaged file and begins a new one;
// Problems reports that. On a disk that takes no writes it opens the file for reading;
// Failing reports that.
func Open(path string) (*Bolt, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("store %s: %w: it is no regular file", path, drivebay.ErrInvalid)
	}
	b, err := openOrBegin(path)
	if err == nil {
		return &Bolt{b}, nil
	}
	if !CannotWrite(err) {
		return nil, err
	}
	b = &database{path: path, readOnly: true, cause: cmp.Or(errors.Unwrap(err), err)}
	b.health.failed = b.cause
	switch err := b.openReadOnly(); {
	case errors.Is(err, drivebay.ErrNoSupport):
		return nil, err
	case err != nil:
		b.note("%v", err)
	}
	return &Bolt{b}, nil
}

// openOrBegin opens the file for writing. It puts a damaged file aside and begins a new one.
func openOrBegin(path string) (*database, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	b, err := open(path)
	if !errors.Is(err, errDamaged) {
		return b, err
	}
	damage := err
	aside, err := putAside(path, time.Now())
	if err != nil {
		return nil, errors.Join(damage, err)
	}
	if b, err = open(path); err != nil {
		return nil, errors.Join(damage, err)
	}
	b.note("%v; it was put aside as %s and a new store was begun: history, acknowledgements and cordons of before are lost, drives, volumes and their data are not", damage, aside)
	return b, nil
}

// putAside renames a damaged file and never replaces an earlier one.
func putAside(path string, now time.Time) (string, error) {
	base := path + ".corrupt-" + now.UTC().Format("20060102T150405Z")
	aside := base
	for i := 2; ; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
			break
		}
		aside = base + "-" + strconv.Itoa(i)
	}
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("store %s: put the damaged file aside: %w", path, err)
	}
	return aside, nil
}

// verify checks all pages of an existing file. It opens the file for reading: then bolt
// takes the lock and trusts only the two meta pages.
func verify(path string) error {
	if st, err := os.Stat(path); err != nil || st.Size() == 0 {
		return nil // there is no file, or an empty one: bolt makes it
	}
	var file *os.File
	err := guard(func() (err error) {
		var db *bolt.DB
		if db, file, err = boltReadOnly(path); err != nil {
			return err
		}
		err = db.View(func(tx *bolt.Tx) error { return walk(tx, file) })
		return errors.Join(err, db.Close())
	})
	if file != nil {
		_ = file.Close() // a panic in bolt.Open leaves it open, and locked
	}
	return err
}

func boltReadOnly(path string) (db *bolt.DB, file *os.File, err error) {
	db, err = bolt.Open(path, 0, &bolt.Options{
		ReadOnly: true, Timeout: lockWait,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	return db, file, err
}

// openReadOnly opens the file of the store for reading.
func (b *database) openReadOnly() (err error) {
	b.db, b.file, err = openReadOnly(b.path)
	b.unread = err
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoFile) {
		b.unread = nil
	}
	return err
}

// openReadOnly opens an existing, undamaged file for reading; otherwise it returns no
// database.
func openReadOnly(path string) (db *bolt.DB, file *os.File, err error) {
	if st, err := os.Stat(path); err != nil || st.Size() == 0 {
		return nil, nil, fmt.Errorf("there is nothing to read: %w", cmp.Or(err, errNoFile))
	}
	if err := verify(path); err != nil {
		return nil, nil, openError(path, err)
	}
	err = guard(func() (err error) {
		if db, file, err = boltReadOnly(path); err == nil {
			err = db.View(func(tx *bolt.Tx) error { return cmp.Or(check(tx), checkSchema(tx)) })
		}
		return err
	})
	if err != nil {
		if db != nil {
			_ = guard(db.Close)
		}
		return nil, nil, openError(path, err)
	}
	return db, file, nil
}

// open opens one file for writing. It returns errDamaged if the file cannot be used.
func open(path string) (*database, error) {
	if err := verify(path); err != nil {
		return nil, openError(path, err)
	}
	b := &database{path: path}
	older := oneMeta(path)
	err := guard(func() (err error) {
		b.db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout: lockWait,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				b.file, err = os.OpenFile(name, flag, mode)
				return b.file, err
			},
		})
		return err
	})
	if err == nil {
		err = b.prepare()
	}
	if err == nil {
		if older {
			b.note("one of its two meta pages is damaged: what was written last may be lost, the drives are believed over it")
		}
		return b, nil
	}
	if b.db != nil {
		_ = guard(b.db.Close)
	}
	if b.file != nil {
		_ = b.file.Close() // a panic in bolt.Open leaves it open, and locked
	}
	return nil, openError(path, err)
}

// minSize is the size of the two meta pages. Bolt refuses a smaller file, without an
// error of its own for that.
var minSize = int64(2 * os.Getpagesize())

// openError explains an error of bolt.Open: damage, or another process with the lock.
func openError(path string, err error) error {
	for _, damage := range []error{berrors.ErrInvalid, berrors.ErrChecksum, berrors.ErrVersionMismatch, berrors.ErrInvalidMapping, berrors.ErrIncompatibleValue} {
		if errors.Is(err, damage) {
			return fmt.Errorf("store %s: %w: %w", path, errDamaged, err)
		}
	}
	if errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("store %s: %w: another daemon holds it", path, drivebay.ErrBusy)
	}
	if st, serr := os.Stat(path); serr == nil && st.Size() > 0 && st.Size() < minSize {
		return fmt.Errorf("store %s: %w: %w", path, errDamaged, err)
	}
	return fmt.Errorf("store %s: %w", path, err)
}

// prepare checks a file that bolt has opened, and makes the buckets.
func (b *database) prepare() error {
	if err := b.file.Chmod(0o600); err != nil {
		return err
	}
	if err := guard(func() error { return b.db.View(check) }); err != nil {
		return err
	}
	return guard(func() error { return b.db.Update(prepareSchema) })
}

func prepareSchema(tx *bolt.Tx) error {
	for _, name := range [][]byte{metaBucket, recordsBucket, eventsBucket, volumesBucket, snapshotsBucket, forgottenBucket, remainsBucket, historyBucket, quarantineBucket} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	if err := checkSchema(tx); err != nil {
		return err
	}
	meta, now := tx.Bucket(metaBucket), []byte(strconv.Itoa(schema))
	if bytes.Equal(meta.Get(schemaKey), now) {
		return nil
	}
	return meta.Put(schemaKey, now) // from here on an older version, which would drop what it does not know, refuses the file
}

// checkSchema refuses a file of a newer version, also one that is only read: its records may mean something else.
func checkSchema(tx *bolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil || meta.Get(schemaKey) == nil {
		return nil
	}
	v := meta.Get(schemaKey)
	version, err := strconv.Atoi(string(v))
	if err != nil {
		return fmt.Errorf("%w: schema version %q", errDamaged, v)
	}
	if version > schema {
		return fmt.Errorf("%w: it was written by a newer drivebay (schema %d, this one knows %d): use that one, or another state directory", drivebay.ErrNoSupport, version, schema)
	}
	return nil
}
