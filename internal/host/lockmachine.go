package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is a file beside the device nodes. The kernel has one devtmpfs, which every container with
// the machine's /dev sees, whatever its mount, network and process namespaces and its state directory
// are. Locks on the drives themselves do not work: udev takes those (systemd,
// docs/BLOCK_DEVICE_LOCKING.md), and O_EXCL prevents our own mounts.
const lockName = "dev/drivebay.lock"

// lockWait is how long an earlier daemon may take to end.
const lockWait = 2 * time.Second

// LockMachine makes the caller the only daemon that manages the drives below root, until its process
// ends or it closes the lock. The kernel keeps the lock while a thread of the process waits for a
// drive, also after the process was killed. The text holder describes the caller to the next daemon. A
// recording has no kernel drives, and a caller that may not write to /dev cannot write to any drive:
// they get no lock, and need none.
func LockMachine(root, holder string) (io.Closer, error) {
	var sys unix.Statfs_t
	if err := unix.Statfs(filepath.Join(root, "sys"), &sys); err != nil || sys.Type != unix.SYSFS_MAGIC {
		return io.NopCloser(nil), nil
	}
	lock, err := lockFile(filepath.Join(root, lockName), holder, lockWait)
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return io.NopCloser(nil), nil
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("lock the drives of this machine: %w: give the daemon the machine's /dev, writable", err)
	case err != nil:
		return nil, fmt.Errorf("lock the drives of this machine: %w", err)
	}
	return lock, nil
}

// lockFile locks a file that is never removed: another daemon may have a removed file open and locked.
func lockFile(name, holder string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Since(began) >= wait {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		other, _ := io.ReadAll(io.LimitReader(f, 4096)) // empty if the other daemon has only just taken the lock
		err = fmt.Errorf("%w: another daemon manages the drives (%s): use that daemon, or stop it first", ErrBusy, strings.TrimSpace(string(other)))
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(holder+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
