package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct is a second handle on a device, which bypasses the page cache. The page cache reads at least
// a page, so one bad sector fails seven good ones as well, and data just written is read back from
// memory.
type direct struct {
	mu     sync.Mutex
	file   *os.File
	closed bool
}

// open opens the device on first use: most disks need no direct reads.
func (d *direct) open(path string) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, os.ErrClosed
	case d.file != nil:
		return d.file, nil
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	d.file = os.NewFile(uintptr(fd), path)
	return d.file, nil
}

func (d *direct) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed = true; d.file != nil {
		d.file.Close()
	}
}

// ReadMedium reads into memory aligned to the block size (open(2), O_DIRECT).
func (d *realDisk) ReadMedium(p []byte, off int64) (int, error) {
	file, err := d.direct.open(d.path)
	if err != nil {
		return 0, fmt.Errorf("%s: open for direct reads: %w", d.name, workError(openError(err)))
	}
	b := p
	if len(p) > 0 && uintptr(unsafe.Pointer(&p[0]))%uintptr(d.block) != 0 {
		b = aligned(len(p), d.block)
	}
	n, err := file.ReadAt(b, off)
	copy(p, b[:n]) // copies nothing if b is p
	if err != nil {
		err = fmt.Errorf("%s, at byte %d: %w", d.name, off, mediumError(err))
	}
	return n, err
}

func aligned(n, block int) []byte {
	b := make([]byte, n+block)
	if over := int(uintptr(unsafe.Pointer(&b[0])) % uintptr(block)); over != 0 {
		b = b[block-over:]
	}
	return b[:n]
}

// mediumError wraps ErrUnreadable around the errors that a drive reported itself: those that the block
// layer derives from its status (block/blk-core.c, blk_errors: medium, protection, target, I/O and
// timeout).
func mediumError(err error) error {
	for _, errno := range []unix.Errno{unix.EIO, unix.ENODATA, unix.EILSEQ, unix.EREMOTEIO, unix.ETIMEDOUT} {
		if errors.Is(err, errno) {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
	}
	return workError(err)
}
