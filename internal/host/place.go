package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"
)

// A place is a path in our own mount namespace, like a program. A container must have the folder of
// the kubelet at the same path, with mounts going both ways (mountPropagation: Bidirectional), or the
// machine sees none of our mounts.

// open opens a place. The configuration names the root, which is opened like any folder; nothing below
// it may be a link or lead out of it.
func (p Place) open(flags uint64) (int, error) {
	if !p.valid() {
		return -1, fmt.Errorf("%s: %w", p, ErrOutsideRoot)
	}
	root, err := unix.Open(p.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, placeError(p, err)
	}
	defer unix.Close(root)
	fd, err := beneath(root, p.Name, flags)
	if err != nil {
		return -1, placeError(p, err)
	}
	return fd, nil
}

// valid reports whether p has an absolute root and no "..", empty part or outer "/" in its name
// (fs.ValidPath).
func (p Place) valid() bool { return path.IsAbs(p.Root) && fs.ValidPath(p.Name) }

func beneath(root int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(root, name, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // EAGAIN: something moved meanwhile (openat2(2))
			return fd, err
		}
	}
}

// folder opens the folder that holds the last part of a place. The caller then acts on the last part
// by its name in that very folder.
func (p Place) folder() (fd int, last string, err error) {
	if p.Name == "." || !p.valid() { // "." is the root, whose folder is outside
		return -1, "", fmt.Errorf("%s: %w", p, ErrOutsideRoot)
	}
	last = path.Base(p.Name)
	fd, err = Place{p.Root, path.Dir(p.Name)}.open(unix.O_PATH | unix.O_DIRECTORY)
	return fd, last, err
}

func placeError(p Place, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("%s: %w: %w", p, ErrOutsideRoot, err)
	}
	return fmt.Errorf("%s: %w", p, workError(err))
}

// Look recognizes a folder without a call to its filesystem, which may have shut down or hang: the
// kernel's name cache knows that the name leads to a folder.
func (r *real) Look(p Place) (PlaceKind, error) {
	fd, err := p.open(unix.O_PATH | unix.O_DIRECTORY)
	if err == nil {
		unix.Close(fd)
		return PlaceFolder, nil
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) { // at the last part, or before it?
		fd, err = p.open(unix.O_PATH | unix.O_NOFOLLOW)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return PlaceNothing, nil
	case err != nil:
		return PlaceNothing, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return PlaceNothing, placeError(p, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR: // it became a folder meanwhile
		return PlaceFolder, nil
	case unix.S_IFREG:
		return PlaceFile, nil
	case unix.S_IFBLK:
		return PlaceDevice, nil
	}
	return PlaceOther, nil
}

func (r *real) MakeFolder(p Place) error {
	return r.make(p, PlaceFolder, func(folder int, last string) error {
		if err := unix.Mkdirat(folder, last, 0o700); err != nil {
			return err
		}
		return setMode(folder, last, unix.O_DIRECTORY, 0o750)
	})
}

func (r *real) MakeFile(p Place) error {
	return r.make(p, PlaceFile, func(folder int, last string) error {
		return setMode(folder, last, unix.O_CREAT|unix.O_EXCL, 0o640)
	})
}

// setMode opens a file and sets its mode, independent of our umask: that of a service is often 0077.
func setMode(folder int, last string, flags int, mode uint32) error {
	fd, err := unix.Openat(folder, last, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, mode)
}

func (r *real) make(p Place, kind PlaceKind, do func(folder int, last string) error) error {
	folder, last, err := p.folder()
	if err != nil {
		return fmt.Errorf("make %w", err)
	}
	defer unix.Close(folder)
	err = do(folder, last)
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.EEXIST) {
		have, lookErr := r.Look(p)
		switch {
		case lookErr != nil:
			return fmt.Errorf("make %w", lookErr)
		case have == kind && kind == PlaceFile:
			if err = emptyFile(folder, last); err == nil {
				return nil
			}
		case have == kind:
			return nil
		case have == PlaceOther:
			err = unix.ELOOP // a link or another special file
		}
	}
	return fmt.Errorf("make %w", placeError(p, err))
}

func (r *real) Remove(p Place) error {
	kind, err := r.Look(p)
	switch {
	case err != nil:
		return fmt.Errorf("remove %w", err)
	case kind == PlaceNothing:
		return nil
	case kind == PlaceOther:
		return fmt.Errorf("remove %w", placeError(p, unix.ELOOP))
	}
	folder, last, err := p.folder()
	if err == nil {
		defer unix.Close(folder)
		if kind == PlaceFolder {
			err = unix.Unlinkat(folder, last, unix.AT_REMOVEDIR)
		} else if err = emptyFile(folder, last); err == nil {
			err = unix.Unlinkat(folder, last, 0)
		}
		err = placeError(p, err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %w", err)
	}
	return nil
}

// emptyFile returns an error unless the file is regular and empty, as MakeFile made it. It takes kind
// and size from one handle. Unlinking a mount point fails anyway, as it is in use.
func emptyFile(folder int, last string) error {
	fd, err := unix.Openat(folder, last, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%w: not a regular file", ErrOccupied)
	case st.Size > 0:
		return fmt.Errorf("%w: a file with %d bytes", ErrOccupied, st.Size)
	}
	return nil
}

// Usage uses a handle without read access: a folder that may not be read has a filesystem as well.
func (r *real) Usage(_ context.Context, p Place) (FSUsage, error) {
	fd, err := p.open(unix.O_PATH)
	if err != nil {
		return FSUsage{}, fmt.Errorf("usage of %w", err)
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return FSUsage{}, fmt.Errorf("usage of %w", placeError(p, err))
	}
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	return FSUsage{Bytes: st.Blocks * unit, Free: st.Bfree * unit, Available: st.Bavail * unit, Inodes: st.Files, FreeInodes: st.Ffree}, nil
}

// ReadFolder makes the filesystem read the names only; it looks up none of them.
func (r *real) ReadFolder(ctx context.Context, p Place) (int, error) {
	fd, err := p.open(unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK)
	if err != nil {
		return 0, fmt.Errorf("read %w", err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 64<<10)
	for count := 0; ; {
		if err := ctx.Err(); err != nil {
			return count, fmt.Errorf("read %s: %w", p, err)
		}
		var n int
		err := again(func() (err error) { n, err = unix.Getdents(fd, buf); return err })
		switch {
		case err != nil:
			return count, fmt.Errorf("read %w", placeError(p, err))
		case n == 0:
			return count, nil
		}
		_, entries, _ := unix.ParseDirent(buf[:n], -1, nil) // without "." and ".."
		count += entries
	}
}
