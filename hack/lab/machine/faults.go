package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// SetCriticalWarning sets the critical warning bits of an NVMe drive's health
// log (NVM Express base specification, figure "SMART / Health Information"):
// 1 spare, 2 temperature, 4 reliability, 8 read only, 16 volatile memory. QEMU
// sends no event for it: it is seen when the log is read.
func (m *Machine) SetCriticalWarning(ctx context.Context, id string, bits uint8) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	if d.Kind != NVMe {
		return fmt.Errorf("%s is no NVMe drive", id)
	}
	for _, dev := range d.devices {
		if dev["driver"] != "nvme" {
			continue
		}
		if err := m.set(ctx, dev["id"].(string), "smart_critical_warning", bits); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) set(ctx context.Context, dev, property string, value any) error {
	_, err := m.control.Run(ctx, "qom-set", map[string]any{"path": "/machine/peripheral/" + dev, "property": property, "value": value})
	return err
}

// backend is the device of a drive that reads and writes its content.
func (d *drive) backend() string {
	for _, dev := range d.devices {
		if dev["drive"] != nil {
			return dev["id"].(string)
		}
	}
	return d.ID
}

// IOError is what a faulty drive answers.
type IOError struct {
	Op     string // read, write or flush
	Sector int64  // of 512 bytes; Everywhere for all of the drive
	Once   bool
}

// Everywhere is the sector of an error that every access meets.
const Everywhere = -1

// FailIO makes a drive answer with errors from now on, until Heal. Its SMART
// counters know nothing of it.
func (m *Machine) FailIO(ctx context.Context, id string, faults ...IOError) error {
	rules := []map[string]any{}
	for _, f := range faults {
		if f.Op != "read" && f.Op != "write" && f.Op != "flush" {
			return fmt.Errorf("break %s: no drive can be made to fail at %q", id, f.Op)
		}
		errno := syscall.EIO
		if f.Op == "read" {
			errno = syscall.ENODATA // which a SCSI drive of QEMU answers as a medium error
		}
		rule := map[string]any{"event": "none", "iotype": f.Op, "errno": int(errno), "once": f.Once}
		if f.Sector != Everywhere {
			rule["sector"] = f.Sector
		}
		rules = append(rules, rule)
	}
	return m.insert(ctx, id, "errors", map[string]any{"driver": "blkdebug", "inject-error": rules})
}

// Limit is how slow a drive gets.
type Limit struct {
	IOPS  int64
	Bytes int64 // a second
}

// Slow limits a drive, until Heal.
func (m *Machine) Slow(ctx context.Context, id string, l Limit) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	group := "limit-" + id
	limits := map[string]any{}
	if l.IOPS > 0 {
		limits["iops-total"] = l.IOPS
	}
	if l.Bytes > 0 {
		limits["bps-total"] = l.Bytes
	}
	if d.Kind == NVMe && l.Bytes > 0 && l.Bytes < 1<<20 {
		// The controller reset that the guest's driver tries makes QEMU wait for
		// the very requests that are held back: nothing but kill -9 helps then.
		return errors.New("an NVMe drive that hangs freezes QEMU: hang a SCSI one, or suspend a dm device over it")
	}
	if _, err := m.control.Run(ctx, "object-add", map[string]any{"qom-type": "throttle-group", "id": group, "limits": limits}); err != nil {
		return err
	}
	if err := m.insert(ctx, id, "slow", map[string]any{"driver": "throttle", "throttle-group": group}); err != nil {
		_, err2 := m.control.Run(ctx, "object-del", map[string]any{"id": group})
		return errors.Join(err, err2)
	}
	return nil
}

// Hang makes a SCSI drive hold back every read and write, until Heal. It still
// answers inquiries, as a drive with a stuck head does.
func (m *Machine) Hang(ctx context.Context, id string) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	if d.Kind != SCSI {
		return fmt.Errorf("hang %s: only a SCSI drive hangs without hanging QEMU", id)
	}
	return m.Slow(ctx, id, Limit{Bytes: 100})
}

// insert puts a filter over a drive's content, while it is in use.
func (m *Machine) insert(ctx context.Context, id, name string, filter map[string]any) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	if d.Kind == USB {
		// The content belongs to an inner device that a change of the stick's own
		// property does not reach: nothing would happen.
		return fmt.Errorf("break %s: a USB drive of QEMU cannot be broken, only pulled", id)
	}
	if d.fault != "" {
		return fmt.Errorf("%s has a fault already: heal it first", id)
	}
	filter["node-name"] = name + "-" + id
	below := "file"
	if filter["driver"] == "blkdebug" {
		below = "image"
	}
	filter[below] = node(d.Drive)
	if _, err := m.control.Run(ctx, "blockdev-add", filter); err != nil {
		return fmt.Errorf("break %s: %w", id, err)
	}
	d.fault = name + "-" + id
	if err := m.set(ctx, d.backend(), "drive", d.fault); err != nil {
		return errors.Join(err, m.removeFault(ctx, d))
	}
	return nil
}

// Heal ends what FailIO, Slow and Hang began.
func (m *Machine) Heal(ctx context.Context, id string) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	if d.fault == "" {
		return nil
	}
	if strings.HasPrefix(d.fault, "slow-") {
		// What is held back must come home before the filter can be taken out.
		limits := map[string]any{"iops-total": 0, "bps-total": 0}
		if _, err := m.control.Run(ctx, "qom-set", map[string]any{"path": "/objects/limit-" + id, "property": "limits", "value": limits}); err != nil {
			return err
		}
	}
	if err := m.set(ctx, d.backend(), "drive", node(d.Drive)); err != nil {
		return err
	}
	return m.removeFault(ctx, d)
}

// removeFault takes the filter out again, and the limit that it had.
func (m *Machine) removeFault(ctx context.Context, d *drive) error {
	if d.fault == "" {
		return nil
	}
	_, err := m.control.Run(ctx, "blockdev-del", map[string]any{"node-name": d.fault})
	if strings.HasPrefix(d.fault, "slow-") {
		_, err2 := m.control.Run(ctx, "object-del", map[string]any{"id": "limit-" + d.ID})
		err = errors.Join(err, err2)
	}
	d.fault = ""
	return err
}
