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

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A store can become unusable while the daemon runs: the disk is full, fails, hangs or
// turns read-only, the file is removed or replaced. This file says so, and takes the
// store into use again.

// hangs is how long a write may take before it is said.
const hangs = 10 * time.Second

// missingTime is how long a removed file stays missing: an operator may put it back.
var missingTime = 10 * time.Second // shorter in tests

// condition is why a store cannot be written.
type condition struct {
	failed  error     // of the last write; nil: it went well
	missing time.Time // when the file was first missed; zero: it is there
	writes  int       // under way
	began   time.Time // when the oldest of them began
}

var (
	errRemoved  = errors.New("the file was removed: it is written anew in some seconds")
	errReplaced = errors.New("another file is in its place: restart drivebay to use that one, or remove it")
	errNoFile   = errors.New("it could not be opened")
)

// Failing is why the store cannot be written, nil while writes go well. It waits for no disk.
func (b *Bolt) Failing() error {
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

// beginWrite counts a write that begins, endWrite takes it off and keeps its error.
func (b *Bolt) beginWrite() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.health.writes++; b.health.writes == 1 {
		b.health.began = time.Now()
	}
}

func (b *Bolt) endWrite(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.health.writes--
	b.health.began = time.Now()                                                           // bolt lets one write in at a time: the next one begins now
	if was := b.health.failed; was == nil || !errors.Is(err, berrors.ErrInvalidMapping) { // which follows from what failed before
		b.health.failed = err
	}
}

// Check looks for the file at its path, and tries to write what could not be written last.
// It ends what Failing says as soon as a write goes well.
func (b *Bolt) Check() {
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

// failed is the error of the last write.
func (b *Bolt) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health.failed
}

// missingLong notes since when the file is missing, and says whether it stays so.
func (b *Bolt) missingLong(err error) bool {
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

// tryWrite writes what the store is known by, which changes nothing.
func (b *Bolt) tryWrite() error { return b.update("try to write", prepareSchema) }

// inPlace proves that the open file is the one at its path. Bolt keeps a removed file in
// use: what is written there is lost with the process. The swap lock is held.
func (b *Bolt) inPlace() error {
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

// recreate writes a file that was removed anew, from what bolt still has of it. A folder
// that is missing is made, a filesystem that is not mounted any more is waited for.
func (b *Bolt) recreate() error {
	b.swap.Lock()
	defer b.swap.Unlock()
	dir := filepath.Dir(b.path)
	if err := b.sameFilesystem(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	copied := b.path + ".new"
	if err := errors.Join(b.copyTo(copied), os.Link(copied, b.path)); err != nil { // link(2) replaces nothing
		return errors.Join(fmt.Errorf("write the removed file anew: %w", err), removed(copied))
	}
	if err := removed(copied); err != nil {
		return err
	}
	next, err := open(b.path)
	if err != nil {
		return err
	}
	b.shut()
	b.db, b.file = next.db, next.file
	return nil
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sameFilesystem proves that a folder, or the nearest one above it that is there, is on
// the filesystem that the store was opened on.
func (b *Bolt) sameFilesystem(dir string) error {
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

func (b *Bolt) copyTo(path string) error {
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

// reopen opens the file at the path anew, for reading only where it still takes no writes.
// After some errors bolt has no file mapped any more (db.go, mmap), and a filesystem that
// was mounted anew is another one than that of the open file.
func (b *Bolt) reopen() error {
	b.swap.Lock()
	defer b.swap.Unlock()
	b.shut() // its lock keeps out whatever wants to write, us included
	next, err := (*Bolt)(nil), os.MkdirAll(filepath.Dir(b.path), 0o700)
	if err == nil {
		next, err = open(b.path) // a damaged one is put aside at a start only
	}
	if err != nil {
		b.cause, b.readOnly = cmp.Or(errors.Unwrap(err), err), true
		b.db, b.file, _ = openReadOnly(b.path)
		return b.cause
	}
	b.db, b.file, b.readOnly = next.db, next.file, false
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = nil
	b.problems = append(b.problems, next.problems...)
	return nil
}

// shut closes what is open.
func (b *Bolt) shut() {
	b.mu.Lock()
	broken := b.broken
	b.mu.Unlock()
	switch {
	case b.db == nil:
	case broken != nil:
		_ = b.file.Close() // a panic may have left bolt's locks held: it would wait for ever
	default:
		_ = guard(b.db.Close)
	}
	b.db, b.file = nil, nil
}

// CannotWrite says of an error that the disk takes no writes now, whatever is on it.
func CannotWrite(err error) bool {
	for _, errno := range []error{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
