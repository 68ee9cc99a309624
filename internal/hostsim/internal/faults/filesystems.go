package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/filesystem"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// Faults of filesystems: of a device ("sda1", "/dev/VG/LV"), of a mount path ("/var/lib/..."), or of
// all filesystems on a drive.

// fsFault applies a fault to the filesystem of a device, mounted or not.
type fsFault func(*Injector, *block.Device, arguments) error

// aimFS returns the devices with a filesystem that the fault names.
func (x *Injector) aimFS(f *Fault) ([]*block.Device, error) {
	name := f.Bay + f.Drive
	if dev := filesystem.VolumeAt(x.mounts, name); dev != nil {
		return x.onlyFS([]*block.Device{dev}, name)
	}
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("fault %s: %w: nothing is mounted at %s, and no device has that name", f.Fault, kernel.ErrInvalid, name)
	}
	d, err := x.target(f)
	if err != nil {
		return nil, err
	}
	return x.onlyFS(d.Stack(), name)
}

func (x *Injector) onlyFS(list []*block.Device, name string) ([]*block.Device, error) {
	list = slices.DeleteFunc(list, func(d *block.Device) bool { return filesystem.StateOf(x.mounts, d) == nil })
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", name, filesystem.ErrNoFS)
	}
	return list, nil
}

func fsErrors(x *Injector, d *block.Device, a arguments) error {
	n, err := a.number("n", 1, manyErrors)
	if err != nil {
		return err
	}
	f := filesystem.MountedOn(x.mounts, d)
	if f == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.Name, kernel.ErrInvalid)
	}
	f.Errors = 0
	f.Fail(n, "__ext4_find_entry:1683: inode #2: comm app: checksumming directory block 0")
	return nil
}

func fsReadOnly(x *Injector, d *block.Device, a arguments) error {
	hidden, err := a.flag("hidden")
	if err != nil {
		return err
	}
	f := filesystem.MountedOn(x.mounts, d)
	if f == nil {
		return fmt.Errorf("%s: %w: it is not mounted", d.Name, kernel.ErrInvalid)
	}
	f.Hidden = hidden
	f.TurnReadOnly()
	return nil
}

func fsCorrupt(x *Injector, d *block.Device, _ arguments) error {
	return filesystem.Edit(x.mounts, d, func(s *content.Super) { s.Damaged = true })
}

func fsFill(x *Injector, d *block.Device, a arguments) error {
	percent, err := a.number("percent", 95, 100)
	if err != nil {
		return err
	}
	return filesystem.Edit(x.mounts, d, func(s *content.Super) { s.Used = s.Usage().Bytes / 100 * percent })
}

// fsUnmount drops all mounts of a device, even those in use.
func fsUnmount(x *Injector, d *block.Device, _ arguments) error {
	f := filesystem.MountedOn(x.mounts, d)
	if f == nil {
		return fmt.Errorf("%s: %w", d.Name, host.ErrNotMounted)
	}
	filesystem.UnmountAll(x.mounts, f)
	return nil
}

// healFS undoes the faults of a filesystem; its content stays.
func healFS(x *Injector, d *block.Device, _ arguments) error {
	if f := filesystem.MountedOn(x.mounts, d); f != nil {
		f.ReadOnly, f.Hidden = f.Wanted, false
	}
	err := filesystem.Edit(x.mounts, d, func(s *content.Super) { s.Damaged, s.Errors, s.Warnings, s.First, s.Last = false, 0, 0, 0, 0 })
	if errors.Is(err, filesystem.ErrNoFS) {
		return nil
	}
	return err
}

// fsTroubles returns the names of the faults of the filesystems on a drive.
func (x *Injector) fsTroubles(d *block.Drive) []string {
	var damaged, failed, readOnly bool
	for _, dev := range d.Stack() {
		if s := filesystem.StateOf(x.mounts, dev); s != nil {
			damaged, failed = damaged || s.Damaged, failed || s.Errors > 0
			f := filesystem.MountedOn(x.mounts, dev)
			readOnly = readOnly || f != nil && f.ReadOnly
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
