package hostsim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// Faults of filesystems: of a device ("sda1", "/dev/VG/LV"), of a mount path ("/var/lib/..."), or of
// all filesystems on a drive.

// fsFault applies a fault to the filesystem of a device, mounted or not.
type fsFault func(*injector, *device, arguments) error

// aimFS returns the devices with a filesystem that the fault names.
func (x *injector) aimFS(f *Fault) ([]*device, error) {
	name := f.Bay + f.Drive
	if dev := volumeAt(x.mounts, name); dev != nil {
		return x.onlyFS([]*device{dev}, name)
	}
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("fault %s: %w: nothing is mounted at %s, and no device has that name", f.Fault, kernel.ErrInvalid, name)
	}
	d, err := x.target(f)
	if err != nil {
		return nil, err
	}
	return x.onlyFS(d.stack(), name)
}

func (x *injector) onlyFS(list []*device, name string) ([]*device, error) {
	list = slices.DeleteFunc(list, func(d *device) bool { return stateOf(x.mounts, d) == nil })
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
	f := mountedOn(x.mounts, d)
	if f == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.name, kernel.ErrInvalid)
	}
	f.Errors = 0
	f.fail(n, "__ext4_find_entry:1683: inode #2: comm app: checksumming directory block 0")
	return nil
}

func fsReadOnly(x *injector, d *device, a arguments) error {
	hidden, err := a.flag("hidden")
	if err != nil {
		return err
	}
	f := mountedOn(x.mounts, d)
	if f == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.name, kernel.ErrInvalid)
	}
	f.hidden = hidden
	f.turnReadOnly()
	return nil
}

func fsCorrupt(x *injector, d *device, _ arguments) error {
	return edit(x.mounts, d, func(s *content.Super) { s.Damaged = true })
}

func fsFill(x *injector, d *device, a arguments) error {
	percent, err := a.number("percent", 95, 100)
	if err != nil {
		return err
	}
	return edit(x.mounts, d, func(s *content.Super) { s.Used = s.Usage().Bytes / 100 * percent })
}

// fsUnmount drops all mounts of a device, even those in use.
func fsUnmount(x *injector, d *device, _ arguments) error {
	f := mountedOn(x.mounts, d)
	if f == nil {
		return fmt.Errorf("%s: %w", d.name, host.ErrNotMounted)
	}
	unmountAll(x.mounts, f)
	return nil
}

// healFS undoes the faults of a filesystem; its content stays.
func healFS(x *injector, d *device, _ arguments) error {
	if f := mountedOn(x.mounts, d); f != nil {
		f.readOnly, f.hidden = f.wanted, false
	}
	err := edit(x.mounts, d, func(s *content.Super) { s.Damaged, s.Errors, s.Warnings, s.First, s.Last = false, 0, 0, 0, 0 })
	if errors.Is(err, errNoFS) {
		return nil
	}
	return err
}

// fsTroubles returns the names of the faults of the filesystems on a drive.
func (x *injector) fsTroubles(d *drive) []string {
	var damaged, failed, readOnly bool
	for _, dev := range d.stack() {
		if s := stateOf(x.mounts, dev); s != nil {
			damaged, failed = damaged || s.Damaged, failed || s.Errors > 0
			f := mountedOn(x.mounts, dev)
			readOnly = readOnly || f != nil && f.readOnly
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
