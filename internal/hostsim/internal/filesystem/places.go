package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Spots are the folders and files of a simulated machine besides those of tree.go: in memory, by
// absolute path. Those of a filesystem are in its note. A new spot's parents are made as well.

// spot is the target of a path through the mounts.
type spot struct {
	on    *mount // nil: the machine's own files
	inner string // path below the root of its filesystem; "" is the root
}

// resolve follows the mounts: of the mounts at a path or above it, the newest is on top.
func (m *Mounter) resolve(at string) spot {
	var on *mount
	for p := at; len(p) > 1; p = p[:max(strings.LastIndexByte(p, '/'), 0)] {
		if x := m.top(p); x != nil && x.boot == "" && (on == nil || x.id > on.id) {
			on = x
		}
	}
	if on == nil {
		return spot{nil, strings.Trim(at, "/")}
	}
	rest := strings.Trim(at[len(on.at):], "/")
	switch {
	case rest == "":
		return spot{on, on.inner}
	case on.inner == "":
		return spot{on, rest}
	}
	return spot{on, on.inner + "/" + rest}
}

// spots returns the map that contains a spot.
func (m *Mounter) spots(s spot) map[string]host.PlaceKind {
	if s.on == nil || s.on.fs == nil {
		return m.own
	}
	return s.on.fs.Spots
}

// lay adds an object at a spot, and its parents.
func (m *Mounter) lay(s spot, kind host.PlaceKind) {
	if s.on != nil && s.on.fs != nil && s.on.fs.Spots == nil {
		s.on.fs.Spots = map[string]host.PlaceKind{}
	}
	list := m.spots(s)
	list[s.inner] = kind
	for up := path.Dir(s.inner); up != "."; up = path.Dir(up) {
		list[up] = host.PlaceFolder
	}
}

// kind returns what is at a path. It ignores the parents.
func (m *Mounter) kind(at string) host.PlaceKind {
	s := m.resolve(at)
	switch {
	case s.on != nil && s.on.at == at:
		return s.on.what
	case s.inner == "":
		return host.PlaceFolder
	case s.on != nil && s.on.what != host.PlaceFolder:
		return host.PlaceNothing
	}
	return m.spots(s)[s.inner]
}

// where checks a place and returns its path: an existing parent below the root must be a
// folder.
func (m *Mounter) where(p host.Place) (string, error) {
	if !path.IsAbs(p.Root) || !fs.ValidPath(p.Name) {
		return "", host.ErrOutsideRoot
	}
	root := strings.TrimSuffix(path.Clean(p.Root), "/")
	if p.Name == "." {
		return cmp.Or(root, "/"), nil
	}
	at := root + "/" + p.Name
	for i := len(root) + 1; i < len(at); i++ {
		if at[i] != '/' {
			continue
		}
		switch m.kind(at[:i]) {
		case host.PlaceOther:
			return "", host.ErrOutsideRoot
		case host.PlaceFile, host.PlaceDevice:
			return "", sysfs.ErrNotFolder
		}
	}
	return at, nil
}

// Look implements host.Mounter.
func (m *Mounter) Look(p host.Place) (host.PlaceKind, error) {
	m.devices.Mu.RLock()
	defer m.devices.Mu.RUnlock()
	at, err := m.where(p)
	if err != nil {
		return host.PlaceNothing, fmt.Errorf("%s: %w", p, err)
	}
	return m.kind(at), nil
}

// MakeFolder implements host.Mounter.
func (m *Mounter) MakeFolder(p host.Place) error { return m.make(p, host.PlaceFolder) }

// MakeFile implements host.Mounter.
func (m *Mounter) MakeFile(p host.Place) error { return m.make(p, host.PlaceFile) }

func (m *Mounter) make(p host.Place, kind host.PlaceKind) error {
	err := m.alter(p, func(at string, s spot) error {
		switch have := m.kind(at); {
		case have == host.PlaceFile && m.written[at]:
			return errContent
		case have == kind:
			return nil
		case have == host.PlaceOther:
			return host.ErrOutsideRoot
		case have != host.PlaceNothing:
			return errExists
		case s.on != nil && s.on.readOnly:
			return errReadFS
		}
		m.lay(s, kind)
		return nil
	})
	if err != nil {
		return fmt.Errorf("make %s: %w", p, err)
	}
	return nil
}

// Remove implements host.Mounter.
func (m *Mounter) Remove(p host.Place) error {
	err := m.alter(p, func(at string, s spot) error {
		switch kind := m.kind(at); {
		case kind == host.PlaceNothing:
			return nil
		case kind == host.PlaceOther:
			return host.ErrOutsideRoot
		case s.on != nil && s.on.at == at:
			return host.ErrBusy
		case s.on != nil && s.on.readOnly:
			return errReadFS
		case kind == host.PlaceFile && m.written[at]:
			return errContent
		case kind == host.PlaceDevice:
			return errDevice
		case kind == host.PlaceFolder && m.count(at) > 0:
			return errFull
		}
		delete(m.spots(s), s.inner)
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove %s: %w", p, err)
	}
	return nil
}

// alter changes a place. In a mounted filesystem the change needs the device.
func (m *Mounter) alter(p host.Place, work func(at string, s spot) error) error {
	m.devices.Mu.Lock()
	at, err := m.where(p)
	if err == nil && p.Name == "." {
		err = host.ErrOutsideRoot
	}
	s := m.resolve(at)
	if err != nil || s.on == nil || s.on.fs == nil || s.on.at == at {
		defer m.devices.Mu.Unlock()
		if err != nil {
			return err
		}
		return work(at, s)
	}
	m.devices.Mu.Unlock()
	return s.on.fs.touch(context.Background(), true, func() error {
		err := work(at, s)
		s.on.fs.save()
		return err
	})
}

// count returns the number of entries of a folder.
func (m *Mounter) count(at string) int {
	s := m.resolve(at)
	above := ""
	if s.inner != "" {
		above = s.inner + "/"
	}
	n := 0
	for name := range m.spots(s) {
		if rest, ok := strings.CutPrefix(name, above); ok && !strings.Contains(rest, "/") {
			n++
		}
	}
	if s.inner == "" && s.on != nil && s.on.fs != nil && s.on.fs.Kind == "ext4" {
		n++ // lost+found
	}
	return n
}

// ReadFolder implements host.Mounter.
func (m *Mounter) ReadFolder(ctx context.Context, p host.Place) (int, error) {
	n, err := m.readFolder(ctx, p)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", p, err)
	}
	return n, nil
}

func (m *Mounter) readFolder(ctx context.Context, p host.Place) (n int, err error) {
	m.devices.Mu.RLock()
	at, err := m.where(p)
	kind, s := m.kind(at), m.resolve(at)
	m.devices.Mu.RUnlock()
	switch {
	case err != nil:
		return 0, err
	case kind == host.PlaceNothing:
		return 0, fs.ErrNotExist
	case kind == host.PlaceOther:
		return 0, host.ErrOutsideRoot
	case kind != host.PlaceFolder:
		return 0, sysfs.ErrNotFolder
	case s.on == nil || s.on.fs == nil:
		m.devices.Mu.Lock()
		defer m.devices.Mu.Unlock()
		return m.count(at), nil
	}
	err = s.on.fs.touch(ctx, false, func() error {
		n = m.count(at)
		return nil
	})
	return n, err
}

var (
	errExists  = fmt.Errorf("%w: file exists", host.ErrOccupied)
	errReadFS  = fmt.Errorf("%w: read-only file system", host.ErrPermission)
	errFull    = fmt.Errorf("%w: directory not empty", host.ErrOccupied)
	errContent = fmt.Errorf("%w: file is not empty", host.ErrOccupied)
	errDevice  = fmt.Errorf("%w: not a regular file", host.ErrOccupied)
)
