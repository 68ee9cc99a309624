package sysfs

import (
	"io/fs"
	"strings"
	"sync"
)

// Files implements host.Files with a tree.
type Files struct {
	tree    *Tree
	mu      *sync.RWMutex
	Missing string // prefix of files that do not exist here; "": none
	Writes  int
}

func NewFiles(t *Tree, mu *sync.RWMutex) *Files { return &Files{tree: t, mu: mu} }

// find returns the node of a name for an operation. Callers hold the lock.
func (f *Files) find(op, name string, follow bool) (*Node, error) {
	n, err := f.tree.Walk(name, follow)
	if err == nil && n.owner != nil && n.owner.Flickers() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// ReadFile implements host.Files.
func (f *Files) ReadFile(name string) ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.Missing != "" && strings.HasPrefix(name, f.Missing) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	n, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.kids != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsFolder}
	}
	return []byte(n.content()), nil
}

// ReadDir implements host.Files.
func (f *Files) ReadDir(name string) ([]string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.kids == nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: ErrNotFolder}
	}
	return n.names(), nil
}

// Readlink implements host.Files.
func (f *Files) Readlink(name string) (string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.Link == "" {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: errNotLink}
	}
	return n.Link, nil
}

// Resolve implements host.Files.
func (f *Files) Resolve(name string) (string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.find("resolve", name, true)
	if err != nil {
		return "", err
	}
	return n.Path, nil
}

// WriteFile implements host.Files.
func (f *Files) WriteFile(name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("open", name, true)
	if err != nil {
		return err
	}
	if n.Write == nil {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	f.Writes++
	if err := n.Write(string(data)); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}
