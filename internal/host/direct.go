package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct is a device once more, open without the kernel's memory in between. Through
// that memory a page is the least that can be read, and one bad sector takes seven
// good ones along; what was just written is read back from memory, too.
type direct struct {
	mu     sync.Mutex
	file   *os.File
	closed bool
}

// open is done when it is first needed: most disks are never read so.
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

// ReadMedium wants memory that is aligned as the blocks are (open(2), O_DIRECT).
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
	copy(p, b[:n]) // nothing, where it is the same memory
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

// mediumError tells an answer of the drive from everything else: these are what the
// block layer makes of a drive's own word (block/blk-core.c, blk_errors: medium,
// protection, target, I/O and timeout).
func mediumError(err error) error {
	for _, errno := range []unix.Errno{unix.EIO, unix.ENODATA, unix.EILSEQ, unix.EREMOTEIO, unix.ETIMEDOUT} {
		if errors.Is(err, errno) {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
	}
	return workError(err)
}
