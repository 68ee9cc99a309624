package hostsim

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Uevents and log lines of drives, worded as in Linux.

// announce sends the events of a drive that is added or removed: from the bus inward for add, the
// reverse for remove.
func (d *drive) announce(action string) {
	type event struct{ subsystem, path, name, devtype string }
	var all []event
	for _, p := range d.places {
		switch d.Kind.Letters {
		case "nvme":
			pci, _ := sysfs.Split(p.device)
			pci, _ = sysfs.Split(pci)
			all = append(all, event{"pci", pci, "", ""}, event{"nvme", p.device, p.ctrl, ""})
		case "sd":
			target, _ := sysfs.Split(p.device)
			all = append(all, event{"scsi", target, "", "scsi_target"}, event{"scsi", p.device, "", "scsi_device"},
				event{"scsi_device", p.device + "/scsi_device/" + p.hctl, "", ""}, event{"scsi_disk", p.device + "/scsi_disk/" + p.hctl, "", ""})
		default:
			all = append(all, event{"virtio", p.device, "", ""})
		}
		if p.block != "" {
			_, name := sysfs.Split(p.block)
			all = append(all, event{"block", p.block, name, "disk"})
		}
	}
	for _, p := range d.parts {
		all = append(all, event{"block", p.dir, p.name, "partition"})
	}
	for i := range all {
		e := all[i]
		if action == "remove" {
			e = all[len(all)-1-i]
		}
		env := map[string]string{}
		if e.devtype != "" {
			env["DEVTYPE"] = e.devtype
		}
		d.m.Uevent(action, e.subsystem, e.path, e.name, env)
	}
}

// changed sends a change event for the disk.
func (d *drive) changed() {
	if d.present {
		d.m.Uevent("change", "block", d.places[0].block, d.name, map[string]string{"DEVTYPE": "disk"})
	}
}

// logGone logs what the kernel logs when a drive is pulled.
func (d *drive) logGone() {
	p := d.places[0]
	switch {
	case d.Kind.Name == model.KindNVMe && d.bay != nil:
		d.m.Logf(kernel.LevelInfo, "pcieport %s: pciehp: Slot(%d): Link Down", p.pci, d.bay.number)
		d.m.Logf(kernel.LevelInfo, "pcieport %s: pciehp: Slot(%d): Card not present", p.pci, d.bay.number)
	case d.Kind.Letters == "sd":
		d.m.Logf(kernel.LevelInfo, "sd %s: [%s] Synchronizing SCSI cache", p.hctl, d.name)
		d.m.Logf(kernel.LevelInfo, "sd %s: [%s] Synchronize Cache(10) failed: Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK", p.hctl, d.name)
	}
}

// logBack logs what the kernel logs when a drive appears.
func (d *drive) logBack() {
	p := d.places[0]
	switch d.Kind.Letters {
	case "nvme":
		d.m.Logf(kernel.LevelInfo, "nvme %s: pci function %s", p.ctrl, p.pci)
	case "sd":
		d.m.Logf(kernel.LevelInfo, "scsi %s: Direct-Access     %-8.8s %-16.16s %-4.4s PQ: 0 ANSI: 7", p.hctl, d.Vendor, d.Model, d.Revision())
		d.m.Logf(kernel.LevelInfo, "sd %s: [%s] %d %d-byte logical blocks", p.hctl, d.name, d.Size/d.Block, d.Block)
		d.m.Logf(kernel.LevelInfo, "sd %s: [%s] Attached SCSI disk", p.hctl, d.name)
	}
}

// logMedium logs an unreadable sector. The line of the block layer names the hidden path of an NVMe
// drive with two ports.
func (d *drive) logMedium(lba uint64) {
	name := d.name
	if len(d.places) > 1 && d.Kind.Name == model.KindNVMe {
		name = fmt.Sprintf("nvme%dc%dn1", d.index, d.index)
	}
	if p := d.places[0]; d.Kind.Letters == "sd" {
		d.m.Logf(kernel.LevelInfo, "sd %s: [%s] tag#181 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s", p.hctl, d.name)
		d.m.Logf(kernel.LevelInfo, "sd %s: [%s] tag#181 Sense Key : Medium Error [current] ", p.hctl, d.name)
		d.m.Logf(kernel.LevelInfo, "sd %s: [%s] tag#181 Add. Sense: Unrecovered read error", p.hctl, d.name)
	}
	d.io.errors++
	d.m.Logf(kernel.LevelErr, "critical medium error, dev %s, sector %d op 0x0:(READ) flags 0x800 phys_seg 1 prio class 2", name, lba)
}
