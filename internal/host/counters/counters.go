package host

import (
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// counterFiles keeps those attributes of block devices open that every tick reads: to resolve their
// names and open them costs more than to read them. The kernel removes an attribute together with its
// device, and a read of the open file fails from then on (ENODEV: Linux, fs/kernfs/file.c,
// kernfs_get_active). So an open file never shows the counters of a later device with the name.
type counterFiles struct {
	mu    sync.Mutex
	files map[string]*counterFile
	swept time.Time
}

type counterFile struct {
	mu   sync.Mutex
	fd   int // -1: closed
	used time.Time
}

const (
	counterDir  = "sys/class/block/"
	counterIdle = time.Minute // after which a file that no call reads is closed
)

// isCounter reports whether a tick reads the file.
func isCounter(name string) bool {
	device, ok := strings.CutPrefix(name, counterDir)
	_, file, _ := strings.Cut(device, "/")
	return ok && slices.Contains([]string{"stat", "inflight", "size"}, file)
}

// read reads a file from its beginning. It returns false if the file cannot be read: the name has to
// be opened then.
func (c *counterFiles) read(name string, now time.Time, open func(string) (int, error)) ([]byte, bool) {
	c.mu.Lock()
	c.sweep(now)
	f := c.files[name]
	if f == nil {
		fd, err := open(name)
		if err != nil {
			c.mu.Unlock()
			return nil, false
		}
		if c.files == nil {
			c.files = map[string]*counterFile{}
		}
		f = &counterFile{fd: fd}
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
func (c *counterFiles) sweep(now time.Time) {
	if now.Sub(c.swept) < counterIdle {
		return
	}
	c.swept = now
	for name, f := range c.files {
		if now.Sub(f.used) >= counterIdle {
			delete(c.files, name)
			go f.close() // a read of it may be under way
		}
	}
}

func (f *counterFile) read() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd < 0 {
		return nil, unix.EBADF
	}
	b := make([]byte, 256) // "stat" has 17 numbers
	for {
		n, err := unix.Pread(f.fd, b, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case n == 0 || n == len(b):
			return nil, unix.EFBIG
		}
		return b[:n], nil
	}
}

func (f *counterFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}
