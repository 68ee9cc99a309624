package hostsim

import (
	"io/fs"
	"strings"
	"sync"
)

// files implements host.Files with a tree.
type files struct {
	tree    *tree
	mu      *sync.RWMutex
	missing string // prefix of files that do not exist here; "": none
	writes  int
}

func newFiles(t *tree, mu *sync.RWMutex) *files { return &files{tree: t, mu: mu} }

// find returns the node of a name for an operation. Callers hold the lock.
func (f *files) find(op, name string, follow bool) (*node, error) {
	n, err := f.tree.walk(name, follow)
	if err == nil && n.owner != nil && n.owner.flickers() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// ReadFile implements host.Files.
func (f *files) ReadFile(name string) ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.missing != "" && strings.HasPrefix(name, f.missing) {
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
func (f *files) ReadDir(name string) ([]string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.kids == nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotFolder}
	}
	return n.names(), nil
}

// Readlink implements host.Files.
func (f *files) Readlink(name string) (string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.link == "" {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: errNotLink}
	}
	return n.link, nil
}

// Resolve implements host.Files.
func (f *files) Resolve(name string) (string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.find("resolve", name, true)
	if err != nil {
		return "", err
	}
	return n.path, nil
}

// WriteFile implements host.Files.
func (f *files) WriteFile(name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("open", name, true)
	if err != nil {
		return err
	}
	if n.write == nil {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	f.writes++
	if err := n.write(string(data)); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}
