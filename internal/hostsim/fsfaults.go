package hostsim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
)

// Faults of filesystems: of a device ("sda1", "/dev/VG/LV"), of a mount path ("/var/lib/..."), or of
// all filesystems on a drive.

// fsFault applies a fault to the filesystem of a device, mounted or not.
type fsFault func(*device, arguments) error

var errNoFS = fmt.Errorf("%w: no filesystem is there", errInvalid)

// aimFS returns the devices with a filesystem that the fault names.
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

// volume returns the partition or mapped device with a name, a node or a mount path.
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

// stack returns a drive's devices and all devices mapped onto them.
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

// state returns the present filesystem of a device, nil if it has none.
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

// fsUnmount drops all mounts of a device, even those in use.
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

// healFS undoes the faults of a filesystem; its content stays.
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

// fsTroubles returns the names of the faults of the filesystems on a drive.
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
