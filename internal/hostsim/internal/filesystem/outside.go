package filesystem

import (
	"cmp"
	"fmt"
	"path"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// Helpers for tests, and for outside callers that only know paths, to change places.

// MakePlace makes a folder at an absolute path, and its parents.
func (m *Mounter) MakePlace(at string) error {
	place, err := placeOf(at)
	if err != nil {
		return err
	}
	return m.MakeFolder(place)
}

// LookAt returns the kind of the place at an absolute path.
func (m *Mounter) LookAt(at string) (host.PlaceKind, error) {
	place, err := placeOf(at)
	if err != nil {
		return host.PlaceNothing, err
	}
	return m.Look(place)
}

// RemovePlace removes the empty folder or the file at an absolute path.
func (m *Mounter) RemovePlace(at string) error {
	place, err := placeOf(at)
	if err != nil {
		return err
	}
	return m.Remove(place)
}

func placeOf(at string) (host.Place, error) {
	if !path.IsAbs(at) {
		return host.Place{}, fmt.Errorf("%s: %w: want an absolute path", at, kernel.ErrInvalid)
	}
	at = path.Clean(at)
	return host.Place{Root: "/", Name: cmp.Or(at[1:], ".")}, nil
}

// PutLink puts an object at a path that is not a folder, file or device.
func (m *Mounter) PutLink(at string) {
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	m.lay(m.resolve(path.Clean(at)), host.PlaceOther)
}

// PutFile puts a file with content at a path.
func (m *Mounter) PutFile(at string) {
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	at = path.Clean(at)
	m.lay(m.resolve(at), host.PlaceFile)
	m.written[at] = true
}

// HoldMount keeps the mount at a path in use until release is called: it cannot be unmounted
// meanwhile.
func (m *Mounter) HoldMount(at string) (release func(), err error) {
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	x := m.top(path.Clean(at))
	if x == nil {
		return nil, fmt.Errorf("%s: %w", at, host.ErrNotMounted)
	}
	x.users++
	return func() {
		m.devices.Mu.Lock()
		defer m.devices.Mu.Unlock()
		x.users--
	}, nil
}

// UnmountBehind drops the topmost mount of a path without the daemon's knowledge.
func (m *Mounter) UnmountBehind(at string) error {
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	x := m.top(path.Clean(at))
	if x == nil {
		return fmt.Errorf("%s: %w", at, host.ErrNotMounted)
	}
	m.drop(x)
	return nil
}

// Fill sets the used bytes of a filesystem, which is named by a device node or a mount path.
func (m *Mounter) Fill(what string, bytes uint64) error {
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	dev := VolumeAt(m, what)
	if dev == nil {
		return fmt.Errorf("fill %s: %w", what, ErrNoFS)
	}
	return Edit(m, dev, func(s *content.Super) { s.Used = bytes })
}
