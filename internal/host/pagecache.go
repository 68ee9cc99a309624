package host

import (
	"sync"

	"golang.org/x/sys/unix"
)

// firstAccess drops what the page cache has of a device before the first access through a handle. A drive, its
// partitions and the devices above it have a page cache each. What a program writes to one of them is not in
// the cache of the others (Linux, block/fops.c: each block device has a mapping of its own), and the kernel keeps
// the cache of a drive for as long as a partition of it is open: udev reads a drive whenever a program that wrote
// to it closes it, and from then on the drive shows what its partition held before.
type firstAccess struct{ once sync.Once }

// drop keeps pages that are not written yet: they are newer than the medium (posix_fadvise(2), POSIX_FADV_DONTNEED).
func (f *firstAccess) drop(fd int) {
	f.once.Do(func() { _ = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
}
