package host

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// udev looks anew at every drive that somebody closes who could have written to
// it: it has the kernel forget all of its partitions and read the table again
// (BLKRRPART; systemd, udevd.c, synthesize_change), unless one of them is in use.
// Whoever is about to use a partition then finds none, or one of another number
// (systemd 252, tried). It leaves a drive alone that somebody has locked
// (https://systemd.io/BLOCK_DEVICE_LOCKING): so we lock those that we write to,
// until udev has heard that they were closed. It looks at them after that.

// quietTime is how long a drive stays locked after it was closed. udev hears of
// it within milliseconds, on a machine that has nothing better to do.
const quietTime = 2 * time.Second

// udevTime is how long we wait for udev, which locks a drive while it looks.
const (
	udevTime = time.Second
	udevTry  = 10 * time.Millisecond
)

// quiet are the drives that are locked, by device number.
type quiet struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	file  *os.File
	until time.Time
}

// keep locks a drive that is open for quietTime from now, or longer if it is
// called again. What cannot be locked within wait is not: that somebody else has
// locked it keeps udev away as well.
func (q *quiet) keep(fd int, num string, wait time.Duration) {
	if q.longer(num) {
		return
	}
	// The lock belongs to the opening: another one, for reading, is no news to udev
	// when it is closed.
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
		q.longer(num) // it may be us
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held == nil {
		q.held = map[string]*lock{}
	}
	q.held[num] = &lock{os.NewFile(uintptr(again), num), time.Now().Add(quietTime)}
	time.AfterFunc(quietTime, func() { q.release(num) })
}

// longer prolongs a lock that there is.
func (q *quiet) longer(num string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.held[num]
	if l != nil {
		l.until = time.Now().Add(quietTime)
	}
	return l != nil
}

func (q *quiet) release(num string) {
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
