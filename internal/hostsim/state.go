package hostsim

import (
	"fmt"
	"strings"
)

var errNoFS = fmt.Errorf("%w: no filesystem is there", errInvalid)

// volume returns the partition or mapped device with a name, a node or a mount path.
func (m *mountTable) volume(name string) *device {
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

// state returns the present filesystem of a device, nil if it has none.
func (m *mountTable) state(d *device) *super {
	if f := m.on[d]; f != nil {
		return &f.super
	}
	if s, ok := readSuper(d.read); ok && !d.gone {
		return &s
	}
	return nil
}

// edit changes the filesystem of a device, in memory and on the medium.
func (m *mountTable) edit(d *device, change func(*super)) error {
	s := m.state(d)
	if s == nil {
		return errNoFS
	}
	change(s)
	if f := m.on[d]; f != nil {
		f.save()
		return nil
	}
	return s.store(d.write)
}
