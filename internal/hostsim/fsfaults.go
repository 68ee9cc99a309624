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
type fsFault func(*injector, *device, arguments) error

// aimFS returns the devices with a filesystem that the fault names.
func (x *injector) aimFS(f *Fault) ([]*device, error) {
	name := f.Bay + f.Drive
	if dev := x.mounts.volume(name); dev != nil {
		return x.onlyFS([]*device{dev}, name)
	}
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("fault %s: %w: nothing is mounted at %s, and no device has that name", f.Fault, errInvalid, name)
	}
	d, err := x.target(f)
	if err != nil {
		return nil, err
	}
	return x.onlyFS(d.stack(), name)
}

func (x *injector) onlyFS(list []*device, name string) ([]*device, error) {
	list = slices.DeleteFunc(list, func(d *device) bool { return x.mounts.state(d) == nil })
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", name, errNoFS)
	}
	return list, nil
}

func fsErrors(x *injector, d *device, a arguments) error {
	n, err := a.number("n", 1, manyErrors)
	if err != nil {
		return err
	}
	if x.mounts.on[d] == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.name, errInvalid)
	}
	x.mounts.on[d].Errors = 0
	x.mounts.on[d].fail(n, "__ext4_find_entry:1683: inode #2: comm app: checksumming directory block 0")
	return nil
}

func fsReadOnly(x *injector, d *device, a arguments) error {
	hidden, err := a.flag("hidden")
	if err != nil {
		return err
	}
	if x.mounts.on[d] == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.name, errInvalid)
	}
	x.mounts.on[d].hidden = hidden
	x.mounts.on[d].turnReadOnly()
	return nil
}

func fsCorrupt(x *injector, d *device, _ arguments) error {
	return x.mounts.edit(d, func(s *super) { s.Damaged = true })
}

func fsFill(x *injector, d *device, a arguments) error {
	percent, err := a.number("percent", 95, 100)
	if err != nil {
		return err
	}
	return x.mounts.edit(d, func(s *super) { s.Used = s.usage().Bytes / 100 * percent })
}

// fsUnmount drops all mounts of a device, even those in use.
func fsUnmount(x *injector, d *device, _ arguments) error {
	if x.mounts.on[d] == nil {
		return fmt.Errorf("%s: %w", d.name, host.ErrNotMounted)
	}
	f := x.mounts.on[d]
	for _, on := range slices.Clone(x.mounts.list) {
		if on.fs == f {
			x.mounts.drop(on)
		}
	}
	return nil
}

// healFS undoes the faults of a filesystem; its content stays.
func healFS(x *injector, d *device, _ arguments) error {
	if x.mounts.on[d] != nil {
		x.mounts.on[d].readOnly, x.mounts.on[d].hidden = x.mounts.on[d].wanted, false
	}
	err := x.mounts.edit(d, func(s *super) { s.Damaged, s.Errors, s.Warnings, s.First, s.Last = false, 0, 0, 0, 0 })
	if errors.Is(err, errNoFS) {
		return nil
	}
	return err
}

// fsTroubles returns the names of the faults of the filesystems on a drive.
func (x *injector) fsTroubles(d *drive) []string {
	var damaged, failed, readOnly bool
	for _, dev := range d.stack() {
		if s := x.mounts.state(dev); s != nil {
			damaged, failed = damaged || s.Damaged, failed || s.Errors > 0
			readOnly = readOnly || x.mounts.on[dev] != nil && x.mounts.on[dev].readOnly
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
