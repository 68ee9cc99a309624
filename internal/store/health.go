package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A store can become unusable while the daemon runs: the disk is full, fails, hangs or
// turns read-only, or the file is removed or replaced. This file reports that, and makes
// the store usable again.

// hangs is how long a write may take before Failing reports it.
const hangs = 10 * time.Second

// missingTime is how long the store waits before it writes a removed file again: an
// operator may put it back.
var missingTime = 10 * time.Second // shorter in tests

// writeState is why a store cannot be written.
type writeState struct {
	failed  error     // error of the last write; nil: it succeeded
	missing time.Time // since when the file is missing; zero: it is there
	writes  int       // number of writes under way
	began   time.Time // when the oldest of them began
}

var (
	errRemoved  = errors.New("the file was removed: it is written again within seconds")
	errReplaced = errors.New("another file is in its place: restart drivebay to use that one, or remove it")
	errNoFile   = errors.New("it could not be opened")
)

// Failing returns why the store cannot be written, nil while writes succeed. It waits for
// no disk.
func (b *database) Failing() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.health.failed
	if b.broken != nil {
		err = b.broken
	}
	if began := b.health.began; err == nil && b.health.writes > 0 && time.Since(began) >= hangs {
		err = fmt.Errorf("a write that began at %s has not ended: the disk may hang", began.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", b.path, err)
	}
	return nil
}

// beginWrite counts a write that begins. endWrite ends it and keeps its error.
func (b *database) beginWrite() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.health.writes++; b.health.writes == 1 {
		b.health.began = time.Now()
	}
}

func (b *database) endWrite(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.health.writes--
	b.health.began = time.Now()                                                           // bolt runs one write at a time: the next one begins now
	if was := b.health.failed; was == nil || !errors.Is(err, berrors.ErrInvalidMapping) { // ErrInvalidMapping only follows from an earlier error
		b.health.failed = err
	}
}

// Check verifies that the open file is at its path, and tries to write if the last write
// failed. It writes a removed file again and reopens one that takes no writes. Failing
// returns nil as soon as a write succeeds.
func (b *database) Check() {
	b.swap.RLock()
	err := b.inPlace()
	b.swap.RUnlock()
	switch long := b.missingLong(err); {
	case long:
		err = b.recreate()
	case errors.Is(err, errRemoved), errors.Is(err, errReplaced):
	case err == nil && b.failed() == nil || b.tryWrite() == nil:
		return
	default:
		err = b.reopen()
	}
	if err == nil {
		err = b.tryWrite()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.health.failed = err
}

// failed returns the error of the last write.
func (b *database) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health.failed
}

// missingLong records since when the file is missing, and reports whether that is at
// least missingTime ago.
func (b *database) missingLong(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !errors.Is(err, errRemoved) {
		b.health.missing = time.Time{}
		return false
	}
	if b.health.missing.IsZero() {
		b.health.missing = time.Now()
	}
	return time.Since(b.health.missing) >= missingTime
}

// tryWrite runs a write transaction with the schema, which changes no content.
func (b *database) tryWrite() error { return b.update("try to write", prepareSchema) }

// inPlace returns an error if the open file is not the one at its path. Bolt continues to
// use a removed file: data written there are lost when the process ends. The caller holds
// the swap lock.
func (b *database) inPlace() error {
	if b.db == nil {
		return errNoFile
	}
	open, err := b.file.Stat()
	if err != nil {
		return err
	}
	at, err := os.Stat(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errRemoved
	case err != nil:
		return err
	case !os.SameFile(open, at):
		return errReplaced
	}
	return nil
}

// recreate writes a removed file again, from the content that bolt still has open. It
// makes a missing folder. It fails while the filesystem of the folder is not mounted.
func (b *database) recreate() error {
	b.swap.Lock()
	defer b.swap.Unlock()
	dir := filepath.Dir(b.path)
	if err := b.sameFilesystem(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	next, err := b.linkCopy()
	if err != nil {
		return fmt.Errorf("write the removed file again: %w", err)
	}
	b.shut()
	b.db, b.file, b.readOnly, b.cause = next.db, next.file, false, nil
	b.folderSynced.Store(false)
	return removed(b.path + ".new")
}

// linkCopy copies the content that bolt has open to a second file, checks and opens the
// copy, and then links the copy at the path of the store. Nothing that can fail follows
// the link: a file at the path that is not the open one counts as another store.
func (b *database) linkCopy() (next *database, err error) {
	b.mu.Lock()
	err = b.broken
	b.mu.Unlock()
	if err != nil {
		return nil, err // a panic may have left bolt's locks held: a copy would wait for ever
	}
	copied := b.path + ".new"
	if err = b.copyTo(copied); err == nil {
		next, err = open(copied)
	}
	if err == nil {
		err = os.Link(copied, b.path) // link(2) replaces nothing
	}
	if err == nil {
		return next, nil
	}
	if next != nil {
		next.shut()
	}
	return nil, errors.Join(err, removed(copied))
}

// syncFolder writes the folder of the store to the disk before the first write to a newly
// opened file. Without it, a loss of power can remove a file that was just made or linked
// (fsync(2)).
func (b *database) syncFolder() error {
	if b.folderSynced.Load() {
		return nil
	}
	if err := host.SyncFolder(filepath.Dir(b.path)); err != nil {
		return err
	}
	b.folderSynced.Store(true)
	return nil
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sameFilesystem returns an error if a folder, or the nearest existing one above it, is not
// on the filesystem on which the store was opened.
func (b *database) sameFilesystem(dir string) error {
	var had, has syscall.Stat_t
	if err := syscall.Fstat(int(b.file.Fd()), &had); err != nil {
		return err
	}
	err := syscall.Stat(dir, &has)
	for errors.Is(err, syscall.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = syscall.Stat(dir, &has)
	}
	if err == nil && had.Dev != has.Dev {
		return fmt.Errorf("the filesystem of the state directory is not mounted at %s any more: mount it", dir)
	}
	return err
}

func (b *database) copyTo(path string) error {
	if err := removed(path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = guard(func() error {
		return b.db.View(func(tx *bolt.Tx) error {
			_, err := tx.WriteTo(file)
			return err
		})
	})
	return errors.Join(err, file.Sync(), file.Close())
}

// reopen opens the file at the path again, for reading only if it still takes no writes.
// After some errors bolt has no file mapped any more (db.go, mmap), and after a remount the
// open file belongs to the old filesystem.
func (b *database) reopen() error {
	b.swap.Lock()
	defer b.swap.Unlock()
	b.shut() // its lock would also block the open below
	next, err := (*database)(nil), os.MkdirAll(filepath.Dir(b.path), 0o700)
	if err == nil {
		next, err = open(b.path) // a damaged file is put aside only at a start
	}
	if err != nil {
		b.cause, b.readOnly = cmp.Or(errors.Unwrap(err), err), true
		_ = b.openReadOnly()
		return b.cause
	}
	b.db, b.file, b.readOnly, b.cause = next.db, next.file, false, nil
	b.folderSynced.Store(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = nil
	b.problems = append(b.problems, next.problems...)
	return nil
}

// shut closes the open file, if any.
func (b *database) shut() {
	b.mu.Lock()
	broken := b.broken
	b.mu.Unlock()
	switch {
	case b.db == nil:
	case broken != nil:
		_ = b.file.Close() // a panic may have left bolt's locks held: its Close would wait for ever
	default:
		_ = guard(b.db.Close)
	}
	b.db, b.file = nil, nil
}

// CannotWrite reports whether an error means that the disk takes no writes now.
func CannotWrite(err error) bool {
	for _, errno := range []error{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
