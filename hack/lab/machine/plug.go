package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Plug puts a new drive in and waits until the guest sees it.
func (m *Machine) Plug(ctx context.Context, d Drive) error {
	if err := d.check(); err != nil {
		return fmt.Errorf("drive %s: %w", d.ID, err)
	}
	if d.cold() || d.Paths > 1 {
		return fmt.Errorf("drive %s: a drive of this kind must be there when the machine starts", d.ID)
	}
	for _, other := range m.drives {
		if other.ID == d.ID || other.Serial == d.Serial {
			return fmt.Errorf("drive %s, serial number %s, is there already: use Replug", other.ID, other.Serial)
		}
	}
	if err := m.adopt(d); err != nil {
		return err
	}
	m.spec.Drives = append(m.spec.Drives, d)
	return m.Replug(ctx, d.ID)
}

// PlugInto puts a new drive into the slot of one that was pulled, which takes another
// slot when it is back.
func (m *Machine) PlugInto(ctx context.Context, d Drive, of string) error {
	before, err := m.drive(of)
	if err != nil {
		return err
	}
	if before.plugged || len(before.slots) != 1 {
		return fmt.Errorf("drive %s: %s is not out of a slot of its own", d.ID, of)
	}
	m.mu.Lock()
	d.Slot = before.slots[0]
	delete(m.taken, d.Slot)
	m.mu.Unlock()
	if err := m.Plug(ctx, d); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before.Slot = 0
	if before.slots, err = m.takeSlots(before.Drive); err != nil {
		return err
	}
	before.devices = devices(before.Drive, before.slots)
	return nil
}

// Replug puts a drive that was pulled in again, with what is on it.
func (m *Machine) Replug(ctx context.Context, id string) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	if err := m.plug(ctx, d); err != nil {
		return err
	}
	return m.await(ctx, []string{d.Serial})
}

// Unplug pulls a drive without asking anybody, as a hand does.
func (m *Machine) Unplug(ctx context.Context, id string) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	if d.cold() {
		return fmt.Errorf("pull %s: QEMU cannot pull a drive from this controller; in the guest, write 1 to its device/delete", id)
	}
	if !d.plugged {
		return fmt.Errorf("pull %s: it is not plugged in", id)
	}
	for _, dev := range slices.Backward(d.devices) {
		if dev["driver"] == "nvme-subsys" || dev["driver"] == "nvme-ns" {
			continue // they go with the controllers
		}
		if err := m.deviceDel(ctx, dev["id"].(string)); err != nil {
			return err
		}
	}
	d.plugged = false
	return m.dropNodes(ctx, d)
}

// UnplugPath pulls one of the controllers of an NVMe drive that has several.
func (m *Machine) UnplugPath(ctx context.Context, id string, path int) error {
	d, err := m.drive(id)
	if err != nil {
		return err
	}
	if path < 0 || path >= d.Paths || d.Paths == 1 {
		return fmt.Errorf("%s has no path %d to pull", id, path)
	}
	return m.deviceDel(ctx, fmt.Sprintf("%s-%d", id, path))
}

func (m *Machine) drive(id string) (*drive, error) {
	if d := m.drives[id]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("the machine has no drive %q", id)
}

func (m *Machine) plug(ctx context.Context, d *drive) error {
	if d.plugged {
		return fmt.Errorf("plug %s: it is plugged in", d.ID)
	}
	if _, err := m.control.Run(ctx, "blockdev-add", blockdev(d.Drive)); err != nil {
		return fmt.Errorf("plug %s: %w", d.ID, err)
	}
	for _, dev := range d.devices {
		if _, err := m.control.Run(ctx, "device_add", dev); err != nil {
			return fmt.Errorf("plug %s: %w", d.ID, err)
		}
	}
	d.plugged = true
	return nil
}

// pullTime is how long a guest may take to let go of a device; it takes a tenth of a
// second, and has been seen to take five on a busy host.
const pullTime = time.Minute

// deviceDel removes a device and waits until it is gone. A virtio device tells
// of its inner part first, which has no name of its own.
func (m *Machine) deviceDel(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pullTime, errors.New("the guest does not let go of it"))
	defer cancel()
	gone := m.control.Expect("DEVICE_DELETED", func(data json.RawMessage) bool {
		var e struct{ Device string }
		return json.Unmarshal(data, &e) == nil && e.Device == id
	})
	if _, err := m.control.Run(ctx, "device_del", map[string]any{"id": id}); err != nil {
		gone.Cancel()
		return fmt.Errorf("pull %s: %w", id, err)
	}
	if err := gone.Done(ctx); err != nil {
		return fmt.Errorf("pull %s: %w", id, err)
	}
	return nil
}

// dropNodes gives up the block nodes of a drive that is out, the topmost first.
func (m *Machine) dropNodes(ctx context.Context, d *drive) error {
	err := m.removeFault(ctx, d)
	_, err2 := m.control.Run(ctx, "blockdev-del", map[string]any{"node-name": node(d.Drive)})
	return errors.Join(err, err2)
}
