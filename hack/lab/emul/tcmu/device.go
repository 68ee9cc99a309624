// Package tcmu lets devices of package emul appear as SCSI devices of the kernel
// that it runs on: through target_core_user, which hands the commands of a target
// to user space, and tcm_loop, a SCSI host whose targets are on the same machine
// (Documentation/target/tcmu-design.rst).
package tcmu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/drivebay/drivebay/hack/lab/emul"
)

// Device is an emulated device that the kernel knows.
type Device struct {
	Unit *emul.Unit
	port port
	srv  *server

	mu      sync.Mutex // plugging takes the kernel a while
	plugged bool
}

// Attach makes the kernel know a device, and plugs it in. Devices of one host are
// told apart by their target number, from 1.
func Attach(ctx context.Context, unit *emul.Unit, host, target int) (*Device, error) {
	d := &Device{Unit: unit, port: port{host, target}}
	size, block := unit.Size()
	err := makeBackstore(unit.Name, size, block)
	if err == nil {
		err = d.serve(ctx)
	}
	if err == nil {
		err = d.port.make()
	}
	if err == nil {
		err = d.Plug(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", unit.Name, errors.Join(err, d.Detach()))
	}
	return d, nil
}

func (d *Device) serve(ctx context.Context) error {
	u, err := openUIO(ctx, d.Unit.Name)
	if err != nil {
		return err
	}
	if d.srv, err = newServer(d.Unit, u); err != nil {
		u.file.Close()
		return err
	}
	go d.srv.run()
	return nil
}

// Plug puts the device into its port and waits until the kernel has it.
func (d *Device) Plug(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.plugged {
		return nil
	}
	d.Unit.Pull(false)
	if err := d.port.plug(d.Unit.Name); err != nil {
		return fmt.Errorf("plug %s: %w", d.Unit.Name, err)
	}
	d.plugged = true
	err := until(ctx, func() (bool, error) {
		n := d.Names()
		return n.Generic != "" && (n.Dev != "" || !d.Unit.IsDisk()), nil
	})
	if err == nil {
		// tcm_loop allows 1024; what is in flight must fit into the data area.
		err = set(sysfs(d.Names().Address), "queue_depth", strconv.Itoa(queueDepth))
	}
	if err != nil {
		return fmt.Errorf("plug %s: its SCSI device: %w", d.Unit.Name, err)
	}
	return nil
}

// Unplug takes it out: from now on nothing answers, and what waits for an answer
// fails.
func (d *Device) Unplug() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.plugged {
		return nil
	}
	d.Unit.Pull(true)
	if err := d.port.unplug(d.Unit.Name); err != nil {
		return fmt.Errorf("unplug %s: %w", d.Unit.Name, err)
	}
	d.plugged = false
	return nil
}

// Detach undoes Attach, however far it came.
func (d *Device) Detach() error {
	d.Unit.Pull(true) // a Plug that waits for a hung device ends now
	err := d.Unplug()
	remove := func(undo func() error) {
		if e := undo(); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	remove(d.port.remove)
	if d.srv != nil {
		remove(d.srv.close)
	}
	remove(func() error { return removeBackstore(d.Unit.Name) })
	return err
}

// Names are what the kernel calls the device while it is plugged.
type Names struct{ Dev, Generic, Address string }

// Names looks the device up in sysfs.
func (d *Device) Names() Names {
	address, err := d.port.address()
	if err != nil {
		return Names{}
	}
	dir := sysfs(address)
	if _, err := os.Stat(dir); err != nil {
		return Names{}
	}
	return Names{Dev: only(dir, "block"), Generic: only(dir, "scsi_generic"), Address: address}
}

// sysfs is the folder of a SCSI device.
func sysfs(address string) string { return filepath.Join("/sys/class/scsi_device", address, "device") }

// only is the name of the one entry of a folder.
func only(dir, name string) string {
	entries, err := os.ReadDir(filepath.Join(dir, name))
	if err != nil || len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}
