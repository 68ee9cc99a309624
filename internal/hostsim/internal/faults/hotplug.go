package faults

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/pages"
)

func vanish(x *Injector, d *block.Drive, _ arguments) error {
	d.Pull()
	return nil
}

func comeBack(x *Injector, d *block.Drive, a arguments) error {
	rename, err := a.flag("rename")
	switch {
	case err != nil:
		return err
	case d.Present:
		return fmt.Errorf("%w: it is in the machine", kernel.ErrInvalid)
	case d.Bay != nil && d.Bay.Drive != nil:
		return fmt.Errorf("%w: there is another drive in bay %d", kernel.ErrInvalid, d.Bay.Number)
	}
	d.Push(rename)
	return nil
}

func move(x *Injector, d *block.Drive, a arguments) error {
	to := a.text("to", "")
	var target *block.Bay
	for _, b := range d.Devices.Bays {
		if to != "" && b.Called(to) && b.Row.Kind == d.Kind.Bay {
			target = b
		}
	}
	switch {
	case target == nil:
		return fmt.Errorf("to=%s: %w: no bay of that name takes a %s drive", to, kernel.ErrInvalid, d.Kind.Name)
	case target.Drive != nil:
		return fmt.Errorf("to=%s: %w: there is a drive in it already", to, kernel.ErrInvalid)
	}
	if d.Present {
		d.Pull()
	}
	d.Bay = target
	d.Push(false)
	return nil
}

// swap exchanges the bays of two drives, as when a person mixes them up.
func swap(x *Injector, d *block.Drive, a arguments) error {
	with := a.text("with", "")
	if with == "" {
		return fmt.Errorf("with: %w: want a bay", kernel.ErrInvalid)
	}
	other, err := x.target(&Fault{Bay: with, Fault: "swap"})
	switch {
	case err != nil:
		return err
	case other == d || d.Bay == nil || other.Bay == nil || d.Bay.Row.Kind != other.Bay.Row.Kind || !d.Present || !other.Present:
		return fmt.Errorf("with=%s: %w: want another drive that is in a bay of the same kind", with, kernel.ErrInvalid)
	}
	d.Pull()
	other.Pull()
	d.Bay, other.Bay = other.Bay, d.Bay
	d.Push(false)
	other.Push(false)
	return nil
}

// replace pulls the drive and puts a new one into its bay.
func replace(x *Injector, d *block.Drive, a arguments) error {
	if d.Bay == nil {
		return fmt.Errorf("%w: it is in no bay", kernel.ErrInvalid)
	}
	k := model.Kinds[model.Kind(a.text("kind", string(d.Kind.Name)))]
	if k == nil || k.Bay != d.Bay.Row.Kind {
		return fmt.Errorf("kind=%s: %w: no drive of that kind fits into the bay", a.text("kind", ""), kernel.ErrInvalid)
	}
	g := block.Group{Kind: k.Name, Serial: a.text("serial", "NEW{n}"), Size: a.text("size", fmt.Sprintf("%dB", d.Size)), Content: a.text("content", "blank"), Paths: d.Paths, Block: int(d.Block)}
	if k == d.Kind {
		g.Vendor, g.Model, g.Firmware = d.Vendor, d.Model, d.Firmware
	}
	next, err := d.Devices.NewDrive(&g, k, d.Bay)
	if err != nil {
		return fmt.Errorf("%w: %w", kernel.ErrInvalid, err)
	}
	if d.Present {
		d.Pull()
	} else if d.Bay.Drive != nil {
		return fmt.Errorf("%w: there is another drive in bay %d", kernel.ErrInvalid, d.Bay.Number)
	}
	d.Devices.Drives = append(d.Devices.Drives, next)
	next.Push(false)
	return nil
}

func changeSerial(x *Injector, d *block.Drive, a arguments) error {
	id := d.Identity
	id.Serial = a.text("serial", "CHANGED1")
	if id.WWN != 0 {
		id.WWN = model.WWN(d.Kind, id.Model+id.Serial)
	}
	reappear(d, id)
	return nil
}

func duplicateSerial(x *Injector, d *block.Drive, a arguments) error {
	of := a.text("of", "")
	other, err := x.target(&Fault{Bay: of, Fault: "duplicate-serial"})
	if err != nil {
		return err
	}
	if other == d {
		return fmt.Errorf("of=%s: %w: that is the drive itself", of, kernel.ErrInvalid)
	}
	id := d.Identity
	id.Serial, id.WWN = other.Serial, other.WWN
	reappear(d, id)
	return nil
}

func noSerial(x *Injector, d *block.Drive, a arguments) error {
	id := d.Identity
	id.Serial = ""
	if a.args["wwn"] != "" {
		keep, err := a.flag("wwn")
		if err != nil {
			return err
		}
		if !keep {
			id.WWN = 0
		}
	}
	reappear(d, id)
	return nil
}

func nonUTF8(x *Injector, d *block.Drive, _ arguments) error {
	id := d.Identity
	id.Model = "SIM\xff\xfeMODEL\x80"
	reappear(d, id)
	return nil
}

// heal restores the drive's state at the start of the machine, except for its power-on hours, and puts
// it back in.
func heal(x *Injector, d *block.Drive, _ arguments) error {
	if !d.Present && d.Bay != nil && d.Bay.Drive != nil {
		return fmt.Errorf("%w: there is another drive in bay %d", kernel.ErrInvalid, d.Bay.Number)
	}
	changed := d.Faults.Offline || d.Faults.Dead || d.Faults.ReadOnly
	d.Release()
	d.Faults, d.Spoilt = block.Faults{}, pages.Spoilt{}
	d.Age, d.Asleep = d.Born.Age, false
	d.ForgetTests()
	if d.Size != d.Born.Size {
		setSize(d, d.Born.Size)
	}
	switch {
	case !d.Present:
		d.Identity = d.Born.Identity
		d.Push(false)
	case d.Identity != d.Born.Identity:
		reappear(d, d.Born.Identity)
	case changed:
		d.Changed()
	}
	for _, dev := range d.Stack() {
		if err := healFS(x, dev, arguments{}); err != nil {
			return err
		}
	}
	return nil
}

// reappear makes the kernel detect the drive again, with another identity.
func reappear(d *block.Drive, id model.Identity) {
	d.Pull()
	d.Identity = id
	d.Push(false)
}
