package host

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// walker reads the files of a recording, and of a root on a kernel without openat2. It resolves names
// itself, relative to the root: absolute links start there and ".." ends there. Archives and copies
// often keep a link as a small file that holds its target. sysfs has no attribute that begins with
// "../", so with texts set such a file is read as the link.
type walker struct {
	dir   string
	texts bool
}

const maxLinks = 40 // the kernel's limit, include/linux/namei.h MAXSYMLINKS

// walk returns the canonical name of a file below the root. It does not follow the last part when
// follow is false.
func (w *walker) walk(name string, follow bool) (string, error) {
	fail := func(err error) (string, error) { return "", &fs.PathError{Op: "walk", Path: name, Err: err} }
	rest := parts(name)
	var at []string
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			at = at[:max(0, len(at)-1)]
			continue
		}
		next := append(slices.Clip(at), part)
		target, err := w.target(next, len(rest) == 0 && !follow)
		if err != nil {
			return fail(err)
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return fail(syscall.ELOOP)
		}
		if filepath.IsAbs(target) {
			at = nil
		}
		rest = append(parts(target), rest...)
	}
	return strings.Join(at, "/"), nil
}

// target returns the text of a link, or "" for anything else.
func (w *walker) target(at []string, last bool) (string, error) {
	full := filepath.Join(w.dir, filepath.Join(at...))
	info, err := os.Lstat(full)
	switch {
	case err != nil:
		return "", unwrap(err)
	case last || info.IsDir():
		return "", nil
	case info.Mode()&fs.ModeSymlink != 0:
		return os.Readlink(full)
	case w.texts && info.Mode().IsRegular():
		return linkText(full, info.Size()), nil
	}
	return "", nil
}

// linkText returns the target in a file that stands for a link.
func linkText(full string, size int64) string {
	if size < 4 || size > 4096 {
		return ""
	}
	b, err := os.ReadFile(full)
	if err != nil || !bytes.HasPrefix(b, []byte("../")) || bytes.ContainsAny(b, "\n\x00") {
		return ""
	}
	return string(b)
}

func parts(name string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(name), "/"), func(p string) bool { return p == "" || p == "." })
}

func (w *walker) full(name string) (string, error) {
	at, err := w.walk(name, true)
	return filepath.Join(w.dir, at), err
}

func (w *walker) ReadFile(name string) ([]byte, error) {
	full, err := w.full(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(full)
	switch {
	case err != nil:
		return nil, &fs.PathError{Op: "read", Path: name, Err: unwrap(err)}
	case !info.Mode().IsRegular(): // reading a pipe in a recording would hang
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	case info.Size() > MaxFile:
		return nil, fmt.Errorf("read %s: longer than %d bytes", name, MaxFile)
	}
	b, err := os.ReadFile(full)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: unwrap(err)}
	}
	return b, nil
}

func (w *walker) ReadDir(name string) ([]string, error) {
	full, err := w.full(name)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(full)
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: unwrap(err)}
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (w *walker) Readlink(name string) (string, error) {
	at, err := w.walk(name, false)
	if err != nil {
		return "", err
	}
	target, err := w.target(parts(at), false)
	if err == nil && target == "" {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

func (w *walker) Resolve(name string) (string, error) { return w.walk(name, true) }

// unwrap removes the machine's own path from an error.
func unwrap(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}
