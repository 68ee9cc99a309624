package hostsim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
)

// Faults of filesystems: those of a device ("sda1", "/dev/VG/LV"), of a place
// ("/var/lib/..."), or all that are on a drive.

// fsFault is what happens to the filesystem of a device, mounted or not.
type fsFault func(*device, arguments) error

var errNoFS = fmt.Errorf("%w: no filesystem is there", errInvalid)

// aimFS finds the devices with a filesystem that a fault means.
func (m *Machine) aimFS(f *Fault) ([]*device, error) {
	name := f.Bay + f.Drive
	if dev := m.volume(name); dev != nil {
		return onlyFS([]*device{dev}, name)
	}
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("fault %s: %w: nothing is mounted at %s, and no device has that name", f.Fault, errInvalid, name)
	}
	d, err := m.target(f)
	if err != nil {
		return nil, err
	}
	return onlyFS(d.stack(), name)
}

func onlyFS(list []*device, name string) ([]*device, error) {
	list = slices.DeleteFunc(list, func(d *device) bool { return d.state() == nil })
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", name, errNoFS)
	}
	return list, nil
}

// volume finds the partition or mapped device of a name, a node or a place.
func (m *Machine) volume(name string) *device {
	if strings.HasPrefix(name, "/") {
		if s := m.resolve(name); s.on != nil && s.on.fs != nil {
			return s.on.fs.dev
		}
	}
	for _, try := range []string{name, "/dev/" + name} {
		if dev := m.lookup(try); dev != nil && (dev.number > 0 || dev.mapped != nil || strings.HasPrefix(name, "/dev/")) {
			return dev
		}
	}
	return nil
}

// stack is a drive's devices and all that is mapped onto them.
func (d *drive) stack() []*device {
	list := slices.Concat(d.disks, d.parts)
	for _, g := range d.m.ghosts { // gone, and still mounted
		for _, x := range g.devices {
			if x.drive == d && x.fs != nil && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	for i := 0; i < len(list); i++ {
		for _, up := range list[i].above {
			if !slices.Contains(list, up) {
				list = append(list, up)
			}
		}
	}
	return list
}

// state is the filesystem of a device as it is now, nil if it has none.
func (d *device) state() *super {
	if d.fs != nil {
		return &d.fs.super
	}
	if s, ok := readSuper(d.read); ok && !d.gone {
		return &s
	}
	return nil
}

// edit changes the filesystem of a device, in memory and on the medium.
func (d *device) edit(change func(*super)) error {
	s := d.state()
	if s == nil {
		return errNoFS
	}
	change(s)
	if d.fs != nil {
		d.fs.save()
		return nil
	}
	return s.store(d.write)
}

func fsErrors(d *device, a arguments) error {
	n, err := a.number("n", 1, manyErrors)
	if err != nil {
		return err
	}
	if d.fs == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.name, errInvalid)
	}
	d.fs.Errors = 0
	d.fs.fail(n, "__ext4_find_entry:1683: inode #2: comm app: checksumming directory block 0")
	return nil
}

func fsReadOnly(d *device, a arguments) error {
	hidden, err := a.flag("hidden")
	if err != nil {
		return err
	}
	if d.fs == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.name, errInvalid)
	}
	d.fs.hidden = hidden
	d.fs.turnReadOnly()
	return nil
}

func fsCorrupt(d *device, _ arguments) error { return d.edit(func(s *super) { s.Damaged = true }) }

func fsFill(d *device, a arguments) error {
	percent, err := a.number("percent", 95, 100)
	if err != nil {
		return err
	}
	return d.edit(func(s *super) { s.Used = s.usage().Bytes / 100 * percent })
}

// fsUnmount takes all mounts of a device away, whoever uses them.
func fsUnmount(d *device, _ arguments) error {
	if d.fs == nil {
		return fmt.Errorf("%s: %w", d.name, host.ErrNotMounted)
	}
	f := d.fs
	for _, x := range slices.Clone(d.m.mounts) {
		if x.fs == f {
			d.m.drop(x)
		}
	}
	return nil
}

// healFS undoes what faults did to a filesystem; what it holds stays.
func healFS(d *device, _ arguments) error {
	if d.fs != nil {
		d.fs.readOnly, d.fs.hidden = d.fs.wanted, false
	}
	err := d.edit(func(s *super) { s.Damaged, s.Errors, s.Warnings, s.First, s.Last = false, 0, 0, 0, 0 })
	if errors.Is(err, errNoFS) {
		return nil
	}
	return err
}

// fsTroubles names what is wrong with the filesystems on a drive.
func (d *drive) fsTroubles() []string {
	var damaged, failed, readOnly bool
	for _, dev := range d.stack() {
		if s := dev.state(); s != nil {
			damaged, failed = damaged || s.Damaged, failed || s.Errors > 0
			readOnly = readOnly || dev.fs != nil && dev.fs.readOnly
		}
	}
	var names []string
	for name, on := range map[string]bool{"fs-corrupt": damaged, "fs-errors": failed, "fs-read-only": readOnly} {
		if on {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
