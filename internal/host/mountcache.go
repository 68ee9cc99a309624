package host

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// mountCache returns the last mount table for as long as the kernel reports no change of it: with a
// thousand mounts, reading the table takes milliseconds. An open mountinfo file is polled for changes of
// its mount namespace (proc_pid_mountinfo(5), fs/proc_namespace.c, mounts_poll).
type mountCache struct {
	mu   sync.Mutex
	fd   int // opened before the table was read; valid while read is set
	at   time.Time
	read []Mount
}

// mountCacheAge is how long a table is used without changes. The kernel reports no change of a
// filesystem's own options: it can turn read-only by itself. Other evidence of that, its error counter and
// the kernel log, comes sooner.
const mountCacheAge = 3 * time.Second

// get returns the table. It calls read where the last table may be out of date.
func (c *mountCache) get(now time.Time, watch func() (int, error), read func() ([]Mount, error)) ([]Mount, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read != nil && now.Sub(c.at) < mountCacheAge && !changed(c.fd) {
		return c.read, nil
	}
	if c.read != nil {
		unix.Close(c.fd)
		c.read = nil
	}
	fd, err := watch() // before the table is read: what changes from then on is reported
	all, failed := read()
	if err != nil {
		return all, failed
	}
	if failed != nil || len(all) == 0 {
		unix.Close(fd)
		return all, failed
	}
	c.fd, c.at, c.read = fd, now, all
	return all, nil
}

// changed reports whether mounts changed since the file was opened. The kernel reports a change once.
func changed(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}
	_, err := unix.Poll(poll, 0)
	return err != nil || poll[0].Revents != 0
}
