// Package counters reads the attributes of block devices in sysfs.
package counters

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// IsAttribute reports whether a file is an attribute in sysfs, of which a read returns all that the
// buffer takes (Linux, fs/kernfs/file.c): a shorter answer is its end. A tick reads hundreds of them.
func IsAttribute(name string) bool {
	for _, dir := range []string{"sys/class/", "sys/block/", "sys/dev/", "sys/devices/", "sys/fs/ext4/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// Files keeps those attributes of block devices and filesystems open that every tick or every call for the statistics of a
// volume reads: to resolve their names and open them costs more than to read them. The kernel removes an attribute together with its
// device, and a read of the open file fails from then on (ENODEV: Linux, fs/kernfs/file.c,
// kernfs_get_active). So an open file never shows the counters of a later device with the name.
type Files struct {
	mu    sync.Mutex
	files map[string]*openFile
	swept time.Time
}

type openFile struct {
	mu   sync.Mutex
	fd   int // -1: closed
	used time.Time
}

// idle is when a file is closed that no call reads. The kubelet asks for the statistics of a volume each minute.
const idle = 3 * time.Minute

// kept are the files by the folder of the device's folder.
var kept = map[string][]string{
	"sys/class/block/": {"stat", "inflight", "size"}, // of a tick
	"sys/dev/block/":   {"start", "size", "uevent"},  // which partition a device is
	"sys/fs/ext4/":     {"errors_count"},             // of all filesystems, every ten seconds
}

// IsKept reports whether the file is kept open.
func IsKept(name string) bool {
	for dir, files := range kept {
		if device, ok := strings.CutPrefix(name, dir); ok {
			_, file, _ := strings.Cut(device, "/")
			return slices.Contains(files, file)
		}
	}
	return false
}

// most is how many files may be open here: a quarter of those of the process.
var most = sync.OnceValue(func() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur/4, 1<<20))
})

// Read reads a file from its beginning. It returns false if the file cannot be read: the name has to
// be opened then.
func (c *Files) Read(name string, now time.Time, open func(string) (int, error)) ([]byte, bool) {
	c.mu.Lock()
	c.sweep(now)
	f := c.files[name]
	if f == nil && len(c.files) >= most() {
		c.mu.Unlock()
		return nil, false
	}
	if f == nil {
		fd, err := open(name)
		if err != nil {
			c.mu.Unlock()
			return nil, false
		}
		if c.files == nil {
			c.files = map[string]*openFile{}
		}
		f = &openFile{fd: fd}
		c.files[name] = f
	}
	f.used = now
	c.mu.Unlock()
	b, err := f.read()
	if err == nil {
		return b, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files[name] == f {
		delete(c.files, name)
	}
	f.close()
	return nil, false
}

// sweep closes the files that no call has read for a while. c.mu is held.
func (c *Files) sweep(now time.Time) {
	if now.Sub(c.swept) < idle {
		return
	}
	c.swept = now
	for name, f := range c.files {
		if now.Sub(f.used) >= idle {
			delete(c.files, name)
			go f.close() // a read of it may be under way
		}
	}
}

func (f *openFile) read() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd < 0 {
		return nil, unix.EBADF
	}
	var b [512]byte // "stat" has 17 numbers, "uevent" the name of a partition
	for {
		n, err := unix.Pread(f.fd, b[:], 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case n == 0 || n == len(b):
			return nil, unix.EFBIG
		}
		return bytes.Clone(b[:n]), nil
	}
}

func (f *openFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}
