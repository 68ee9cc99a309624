package hostsim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

var errNoFS = fmt.Errorf("%w: no filesystem is there", kernel.ErrInvalid)

// volumeAt returns the partition or mapped device with a name, a node or a mount path.
func volumeAt(m *mounter, name string) *device {
	if strings.HasPrefix(name, "/") {
		if s := m.resolve(name); s.on != nil && s.on.fs != nil {
			return s.on.fs.dev
		}
	}
	for _, try := range []string{name, "/dev/" + name} {
		if dev := m.devices.lookup(try); dev != nil && (dev.number > 0 || dev.mapped != nil || strings.HasPrefix(name, "/dev/")) {
			return dev
		}
	}
	return nil
}

// stateOf returns the present filesystem of a device, nil if it has none.
func stateOf(m *mounter, d *device) *content.Super {
	if f := m.on[d]; f != nil {
		return &f.Super
	}
	if s, ok := content.ReadSuper(d.read); ok && !d.gone {
		return &s
	}
	return nil
}

// edit changes the filesystem of a device, in memory and on the medium.
func edit(m *mounter, d *device, change func(*content.Super)) error {
	s := stateOf(m, d)
	if s == nil {
		return errNoFS
	}
	change(s)
	if f := m.on[d]; f != nil {
		f.save()
		return nil
	}
	return s.Store(d.write)
}

// mountedOn returns the mounted filesystem of a device, nil without one.
func mountedOn(m *mounter, d *device) *filesystem { return m.on[d] }

// unmountAll drops all mounts of a filesystem, even those in use.
func unmountAll(m *mounter, f *filesystem) {
	for _, x := range slices.Clone(m.list) {
		if x.fs == f {
			m.drop(x)
		}
	}
}
