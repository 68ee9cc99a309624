package hostsim

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
)

// find returns the node of a name for an operation. Callers hold the lock.
func (m *Machine) find(op, name string, follow bool) (*node, error) {
	n, err := m.tree.walk(name, follow)
	if err == nil && n.owner != nil && n.owner.flickers() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// ReadFile implements host.Files.
func (m *Machine) ReadFile(name string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if strings.HasPrefix(name, "run/udev/") && slices.Contains(m.without, "udev") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.kids != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsFolder}
	}
	return []byte(n.content()), nil
}

// ReadDir implements host.Files.
func (m *Machine) ReadDir(name string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.kids == nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotFolder}
	}
	return n.names(), nil
}

// Readlink implements host.Files.
func (m *Machine) Readlink(name string) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.link == "" {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: errNotLink}
	}
	return n.link, nil
}

// Resolve implements host.Files.
func (m *Machine) Resolve(name string) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("resolve", name, true)
	if err != nil {
		return "", err
	}
	return n.path, nil
}

// WriteFile implements host.Files.
func (m *Machine) WriteFile(name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name, true)
	if err != nil {
		return err
	}
	if n.write == nil {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	m.stats.Writes++
	if err := n.write(string(data)); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

var _ host.Machine = (*Machine)(nil)
