package hostsim

import (
	"fmt"
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
		return fmt.Errorf("%w: it is in the machine", errInvalid)
	case d.bay != nil && d.bay.drive != nil:
		return fmt.Errorf("%w: there is another drive in bay %d", errInvalid, d.bay.number)
	}
	d.push(rename)
	return nil
}

func move(x *injector, d *drive, a arguments) error {
	to := a.text("to", "")
	var target *bay
	for _, b := range d.m.bays {
		if to != "" && b.called(to) && b.row.kind == d.kind.bay {
			target = b
		}
	}
	switch {
	case target == nil:
		return fmt.Errorf("to=%s: %w: no bay of that name takes a %s drive", to, errInvalid, d.kind.name)
	case target.drive != nil:
		return fmt.Errorf("to=%s: %w: there is a drive in it already", to, errInvalid)
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
		return fmt.Errorf("with: %w: want a bay", errInvalid)
	}
	other, err := x.target(&Fault{Bay: with, Fault: "swap"})
	switch {
	case err != nil:
		return err
	case other == d || d.bay == nil || other.bay == nil || d.bay.row.kind != other.bay.row.kind || !d.present || !other.present:
		return fmt.Errorf("with=%s: %w: want another drive that is in a bay of the same kind", with, errInvalid)
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
		return fmt.Errorf("%w: it is in no bay", errInvalid)
	}
	k := kinds[Kind(a.text("kind", string(d.kind.name)))]
	if k == nil || k.bay != d.bay.row.kind {
		return fmt.Errorf("kind=%s: %w: no drive of that kind fits into the bay", a.text("kind", ""), errInvalid)
	}
	g := Group{Kind: k.name, Serial: a.text("serial", "NEW{n}"), Size: a.text("size", fmt.Sprintf("%dB", d.size)), Content: a.text("content", "blank"), Paths: d.paths, Block: int(d.block)}
	if k == d.kind {
		g.Vendor, g.Model, g.Firmware = d.vendor, d.model, d.firmware
	}
	next, err := d.m.newDrive(&g, k, d.bay)
	if err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	if d.present {
		d.pull()
	} else if d.bay.drive != nil {
		return fmt.Errorf("%w: there is another drive in bay %d", errInvalid, d.bay.number)
	}
	d.m.drives = append(d.m.drives, next)
	next.push(false)
	return nil
}

func changeSerial(x *injector, d *drive, a arguments) error {
	id := d.identity
	id.serial = a.text("serial", "CHANGED1")
	if id.wwn != 0 {
		id.wwn = wwnOf(d.kind, id.model+id.serial)
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
		return fmt.Errorf("of=%s: %w: that is the drive itself", of, errInvalid)
	}
	id := d.identity
	id.serial, id.wwn = other.serial, other.wwn
	reappear(d, id)
	return nil
}

func noSerial(x *injector, d *drive, a arguments) error {
	id := d.identity
	id.serial = ""
	if a.args["wwn"] != "" {
		keep, err := a.flag("wwn")
		if err != nil {
			return err
		}
		if !keep {
			id.wwn = 0
		}
	}
	reappear(d, id)
	return nil
}

func nonUTF8(x *injector, d *drive, _ arguments) error {
	id := d.identity
	id.model = "SIM\xff\xfeMODEL\x80"
	reappear(d, id)
	return nil
}

// heal restores the drive's state at the start of the machine, except for its power-on hours, and puts
// it back in.
func heal(x *injector, d *drive, _ arguments) error {
	if !d.present && d.bay != nil && d.bay.drive != nil {
		return fmt.Errorf("%w: there is another drive in bay %d", errInvalid, d.bay.number)
	}
	changed := d.faults.offline || d.faults.dead || d.faults.readOnly
	d.release()
	d.faults, d.spoilt = faults{}, spoilt{}
	d.age, d.asleep, d.tests, d.running = d.born.age, false, nil, nil
	if d.size != d.born.size {
		setSize(d, d.born.size)
	}
	switch {
	case !d.present:
		d.identity = d.born.identity
		d.push(false)
	case d.identity != d.born.identity:
		reappear(d, d.born.identity)
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
func reappear(d *drive, id identity) {
	d.pull()
	d.identity = id
	d.push(false)
}
