package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host/counters"
	"golang.org/x/sys/unix"
)

// tree reads the files below a root. For the root "/" the kernel resolves names as for every process.
// Below any other root it resolves them as if that folder were "/" (openat2 RESOLVE_IN_ROOT, Linux
// 5.6), so that an absolute link of that machine does not lead to our files. Where that call is
// missing or forbidden, walker resolves the names.
type tree struct {
	dir    string // "" for "/"
	fd     int    // O_PATH handle of dir; unused for "/"
	walker *walker
}

func newTree(dir string) (*tree, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs) // the kernel's name of it, which Resolve cuts off
	}
	if err != nil {
		return nil, err
	}
	if abs == "/" {
		return &tree{fd: unix.AT_FDCWD}, nil
	}
	fd, err := unix.Open(abs, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: err}
	}
	t := &tree{dir: abs, fd: fd}
	probe, err := t.openat(".", unix.O_PATH|unix.O_CLOEXEC)
	if err != nil { // ENOSYS of an old kernel, EPERM of a container that does not know the call
		unix.Close(fd)
		return &tree{dir: abs, fd: -1, walker: &walker{dir: abs}}, nil
	}
	unix.Close(probe)
	return t, nil
}

func (t *tree) open(name string, flags int) (*os.File, error) {
	flags |= unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := t.openat(name, flags)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (t *tree) openat(name string, flags int) (int, error) {
	switch {
	case t.dir == "":
		return unix.Open("/"+name, flags, 0)
	case t.walker != nil:
		at, err := t.walker.walk(name, flags&unix.O_NOFOLLOW == 0)
		if err != nil {
			return -1, unwrap(err)
		}
		return unix.Open(filepath.Join(t.dir, at), flags|unix.O_NOFOLLOW, 0)
	case name == "":
		name = "."
	}
	for {
		fd, err := unix.Openat2(t.fd, name, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
		if err != unix.EAGAIN && err != unix.EINTR { // EAGAIN: something moved meanwhile (openat2(2))
			return fd, err
		}
	}
}

// ReadFile uses plain system calls: an inventory is thousands of small attributes, and os.File would
// first register each with the poller.
func (t *tree) ReadFile(name string) ([]byte, error) {
	var small [512]byte // on the stack: most attributes have some bytes, and a tick reads hundreds
	b, err := t.readInto(name, small[:])
	return bytes.Clone(b), err
}

// readInto reads a file into b, or into a larger buffer where b is too small.
func (t *tree) readInto(name string, b []byte) ([]byte, error) {
	fd, err := t.openat(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	if b = b[:0]; cap(b) == 0 {
		b = make([]byte, 0, 512)
	}
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return b, nil
		}
		if b = b[:len(b)+n]; len(b) > MaxFile {
			return nil, fmt.Errorf("read %s: longer than %d bytes", name, MaxFile)
		}
		if len(b) < cap(b) && counters.IsAttribute(name) {
			return b, nil
		}
		if len(b) == cap(b) {
			b = slices.Grow(b, cap(b))
		}
	}
}

func (t *tree) ReadDir(name string) ([]string, error) {
	f, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (t *tree) Readlink(name string) (string, error) {
	fd, err := t.openat(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	defer unix.Close(fd)
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(buf[:n]), nil
}

func (t *tree) Resolve(name string) (string, error) {
	fd, err := t.openat(name, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return "", &fs.PathError{Op: "resolve", Path: name, Err: err}
	}
	defer unix.Close(fd)
	full, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimPrefix(full, t.dir), "/"), nil
}

func (t *tree) WriteFile(name string, data []byte) error {
	f, err := t.open(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Unwrap(err))
	}
	return nil
}

// DiskSeq identifies a disk across all boots, by its folder in sysfs; "" where the kernel has no diskseq.
func DiskSeq(files Files, disk string) string {
	boot, _ := files.ReadFile("proc/sys/kernel/random/boot_id")
	seq, _ := files.ReadFile(disk + "/diskseq")
	if len(boot) == 0 || len(seq) == 0 {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + strings.TrimSpace(string(seq))
}
