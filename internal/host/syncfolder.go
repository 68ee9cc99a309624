package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncFolder makes what was made, renamed or removed in a folder permanent: without it, a loss of power can
// undo it (fsync(2)). A filesystem that cannot sync a folder says EINVAL, which is no error here.
func SyncFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
