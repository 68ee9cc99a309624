package host

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// When a program closes a drive that was open for writing, udev makes the kernel drop all of its
// partitions and read the table again (BLKRRPART; systemd, udevd.c, synthesize_change), unless a
// partition is in use. A program that is about to use a partition then finds none, or one of another
// number (systemd 252, tried). udev skips a drive that is locked
// (https://systemd.io/BLOCK_DEVICE_LOCKING). So drivebay locks the drives that it writes to, until
// udev has received the event of the close. udev inspects them after that.

// udevLockTime is how long a drive stays locked after it was closed. On an idle machine udev receives
// the event of the close within milliseconds.
const udevLockTime = 2 * time.Second

// udevTime is how long Close waits for udev, which locks a drive while it inspects it.
const (
	udevTime = time.Second
	udevTry  = 10 * time.Millisecond
)

// udevLocks holds the locks of drives, by device number.
type udevLocks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	file  *os.File
	until time.Time
}

// keep locks an open drive for udevLockTime from now, or longer if it is called again. A drive that
// cannot be locked within wait stays unlocked: the lock of another process keeps udev away as well.
func (q *udevLocks) keep(fd int, num string, wait time.Duration) {
	if q.longer(num) {
		return
	}
	// The lock belongs to the open file description: udev ignores the close of this second one, which
	// is for reading.
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for began := time.Now(); ; {
		if err = unix.Flock(again, unix.LOCK_EX|unix.LOCK_NB); err == nil || time.Since(began) >= wait {
			break
		}
		<-time.After(udevTry)
	}
	if err != nil {
		unix.Close(again)
		q.longer(num) // the other lock may be ours
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held == nil {
		q.held = map[string]*lock{}
	}
	q.held[num] = &lock{os.NewFile(uintptr(again), num), time.Now().Add(udevLockTime)}
	time.AfterFunc(udevLockTime, func() { q.release(num) })
}

// longer extends a lock if there is one.
func (q *udevLocks) longer(num string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.held[num]
	if l != nil {
		l.until = time.Now().Add(udevLockTime)
	}
	return l != nil
}

func (q *udevLocks) release(num string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.held[num]
	if left := time.Until(l.until); left > 0 {
		time.AfterFunc(left, func() { q.release(num) })
		return
	}
	l.file.Close()
	delete(q.held, num)
}
