package hostsim

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/pages"
)

func vanish(x *injector, d *drive, _ arguments) error {
	d.pull()
	return nil
}

func comeBack(x *injector, d *drive, a arguments) error {
	rename, err := a.flag("rename")
	switch {
	case err != nil:
		return err
	case d.present:
		return fmt.Errorf("%w: it is in the machine", kernel.ErrInvalid)
	case d.bay != nil && d.bay.drive != nil:
		return fmt.Errorf("%w: there is another drive in bay %d", kernel.ErrInvalid, d.bay.number)
	}
	d.push(rename)
	return nil
}

func move(x *injector, d *drive, a arguments) error {
	to := a.text("to", "")
	var target *bay
	for _, b := range d.m.bays {
		if to != "" && b.called(to) && b.row.kind == d.Kind.Bay {
			target = b
		}
	}
	switch {
	case target == nil:
		return fmt.Errorf("to=%s: %w: no bay of that name takes a %s drive", to, kernel.ErrInvalid, d.Kind.Name)
	case target.drive != nil:
		return fmt.Errorf("to=%s: %w: there is a drive in it already", to, kernel.ErrInvalid)
	}
	if d.present {
		d.pull()
	}
	d.bay = target
	d.push(false)
	return nil
}

// swap exchanges the bays of two drives, as when a person mixes them up.
func swap(x *injector, d *drive, a arguments) error {
	with := a.text("with", "")
	if with == "" {
		return fmt.Errorf("with: %w: want a bay", kernel.ErrInvalid)
	}
	other, err := x.target(&Fault{Bay: with, Fault: "swap"})
	switch {
	case err != nil:
		return err
	case other == d || d.bay == nil || other.bay == nil || d.bay.row.kind != other.bay.row.kind || !d.present || !other.present:
		return fmt.Errorf("with=%s: %w: want another drive that is in a bay of the same kind", with, kernel.ErrInvalid)
	}
	d.pull()
	other.pull()
	d.bay, other.bay = other.bay, d.bay
	d.push(false)
	other.push(false)
	return nil
}

// replace pulls the drive and puts a new one into its bay.
func replace(x *injector, d *drive, a arguments) error {
	if d.bay == nil {
		return fmt.Errorf("%w: it is in no bay", kernel.ErrInvalid)
	}
	k := model.Kinds[model.Kind(a.text("kind", string(d.Kind.Name)))]
	if k == nil || k.Bay != d.bay.row.kind {
		return fmt.Errorf("kind=%s: %w: no drive of that kind fits into the bay", a.text("kind", ""), kernel.ErrInvalid)
	}
	g := Group{Kind: k.Name, Serial: a.text("serial", "NEW{n}"), Size: a.text("size", fmt.Sprintf("%dB", d.Size)), Content: a.text("content", "blank"), Paths: d.Paths, Block: int(d.Block)}
	if k == d.Kind {
		g.Vendor, g.Model, g.Firmware = d.Vendor, d.Model, d.Firmware
	}
	next, err := d.m.newDrive(&g, k, d.bay)
	if err != nil {
		return fmt.Errorf("%w: %w", kernel.ErrInvalid, err)
	}
	if d.present {
		d.pull()
	} else if d.bay.drive != nil {
		return fmt.Errorf("%w: there is another drive in bay %d", kernel.ErrInvalid, d.bay.number)
	}
	d.m.drives = append(d.m.drives, next)
	next.push(false)
	return nil
}

func changeSerial(x *injector, d *drive, a arguments) error {
	id := d.Identity
	id.Serial = a.text("serial", "CHANGED1")
	if id.WWN != 0 {
		id.WWN = model.WWN(d.Kind, id.Model+id.Serial)
	}
	reappear(d, id)
	return nil
}

func duplicateSerial(x *injector, d *drive, a arguments) error {
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

func noSerial(x *injector, d *drive, a arguments) error {
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

func nonUTF8(x *injector, d *drive, _ arguments) error {
	id := d.Identity
	id.Model = "SIM\xff\xfeMODEL\x80"
	reappear(d, id)
	return nil
}

// heal restores the drive's state at the start of the machine, except for its power-on hours, and puts
// it back in.
func heal(x *injector, d *drive, _ arguments) error {
	if !d.present && d.bay != nil && d.bay.drive != nil {
		return fmt.Errorf("%w: there is another drive in bay %d", kernel.ErrInvalid, d.bay.number)
	}
	changed := d.faults.offline || d.faults.dead || d.faults.readOnly
	d.release()
	d.faults, d.Spoilt = faults{}, pages.Spoilt{}
	d.Age, d.Asleep, d.Tests, d.Running = d.born.age, false, nil, nil
	if d.Size != d.born.size {
		setSize(d, d.born.size)
	}
	switch {
	case !d.present:
		d.Identity = d.born.Identity
		d.push(false)
	case d.Identity != d.born.Identity:
		reappear(d, d.born.Identity)
	case changed:
		d.changed()
	}
	for _, dev := range d.stack() {
		if err := healFS(x, dev, arguments{}); err != nil {
			return err
		}
	}
	return nil
}

// reappear makes the kernel detect the drive again, with another identity.
func reappear(d *drive, id model.Identity) {
	d.pull()
	d.Identity = id
	d.push(false)
}
