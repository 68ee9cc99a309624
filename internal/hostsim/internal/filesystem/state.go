package filesystem

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

var ErrNoFS = fmt.Errorf("%w: no filesystem is there", kernel.ErrInvalid)

// VolumeAt returns the partition or mapped device with a name, a node or a mount path.
func VolumeAt(m *Mounter, name string) *block.Device {
	if strings.HasPrefix(name, "/") {
		if s := m.resolve(name); s.on != nil && s.on.fs != nil {
			return s.on.fs.dev
		}
	}
	for _, try := range []string{name, "/dev/" + name} {
		if dev := m.devices.Lookup(try); dev != nil && (dev.Number > 0 || dev.Mapped != nil || strings.HasPrefix(name, "/dev/")) {
			return dev
		}
	}
	return nil
}

// StateOf returns the present filesystem of a device, nil if it has none.
func StateOf(m *Mounter, d *block.Device) *content.Super {
	if f := m.on[d]; f != nil {
		return &f.Super
	}
	if s, ok := content.ReadSuper(d.Read); ok && !d.Gone {
		return &s
	}
	return nil
}

// Edit changes the filesystem of a device, in memory and on the medium.
func Edit(m *Mounter, d *block.Device, change func(*content.Super)) error {
	s := StateOf(m, d)
	if s == nil {
		return ErrNoFS
	}
	change(s)
	if f := m.on[d]; f != nil {
		f.save()
		return nil
	}
	return s.Store(d.Write)
}

// MountedOn returns the mounted filesystem of a device, nil without one.
func MountedOn(m *Mounter, d *block.Device) *Mounted { return m.on[d] }

// UnmountAll drops all mounts of a filesystem, even those in use.
func UnmountAll(m *Mounter, f *Mounted) {
	for _, x := range slices.Clone(m.list) {
		if x.fs == f {
			m.drop(x)
		}
	}
}
