package block

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Uevents and log lines of drives, worded as in Linux.

// announce sends the events of a drive that is added or removed: from the bus inward for add, the
// reverse for remove.
func (d *Drive) announce(action string) {
	type event struct{ subsystem, path, name, devtype string }
	var all []event
	for _, p := range d.Places {
		switch d.Kind.Letters {
		case "nvme":
			pci, _ := sysfs.Split(p.device)
			pci, _ = sysfs.Split(pci)
			all = append(all, event{"pci", pci, "", ""}, event{"nvme", p.device, p.Ctrl, ""})
		case "sd":
			target, _ := sysfs.Split(p.device)
			all = append(all, event{"scsi", target, "", "scsi_target"}, event{"scsi", p.device, "", "scsi_device"},
				event{"scsi_device", p.device + "/scsi_device/" + p.Hctl, "", ""}, event{"scsi_disk", p.device + "/scsi_disk/" + p.Hctl, "", ""})
		default:
			all = append(all, event{"virtio", p.device, "", ""})
		}
		if p.block != "" {
			_, name := sysfs.Split(p.block)
			all = append(all, event{"block", p.block, name, "disk"})
		}
	}
	for _, p := range d.Parts {
		all = append(all, event{"block", p.Dir, p.Name, "partition"})
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
		d.Devices.Uevent(action, e.subsystem, e.path, e.name, env)
	}
}

// Changed sends a change event for the disk.
func (d *Drive) Changed() {
	if d.Present {
		d.Devices.Uevent("change", "block", d.Places[0].block, d.Name, map[string]string{"DEVTYPE": "disk"})
	}
}

// logGone logs what the kernel logs when a drive is pulled.
func (d *Drive) logGone() {
	p := d.Places[0]
	switch {
	case d.Kind.Name == model.KindNVMe && d.Bay != nil:
		d.Devices.Logf(kernel.LevelInfo, "pcieport %s: pciehp: Slot(%d): Link Down", p.pci, d.Bay.Number)
		d.Devices.Logf(kernel.LevelInfo, "pcieport %s: pciehp: Slot(%d): Card not present", p.pci, d.Bay.Number)
	case d.Kind.Letters == "sd":
		d.Devices.Logf(kernel.LevelInfo, "sd %s: [%s] Synchronizing SCSI cache", p.Hctl, d.Name)
		d.Devices.Logf(kernel.LevelInfo, "sd %s: [%s] Synchronize Cache(10) failed: Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK", p.Hctl, d.Name)
	}
}

// logBack logs what the kernel logs when a drive appears.
func (d *Drive) logBack() {
	p := d.Places[0]
	switch d.Kind.Letters {
	case "nvme":
		d.Devices.Logf(kernel.LevelInfo, "nvme %s: pci function %s", p.Ctrl, p.pci)
	case "sd":
		d.Devices.Logf(kernel.LevelInfo, "scsi %s: Direct-Access     %-8.8s %-16.16s %-4.4s PQ: 0 ANSI: 7", p.Hctl, d.Vendor, d.Model, d.Revision())
		d.Devices.Logf(kernel.LevelInfo, "sd %s: [%s] %d %d-byte logical blocks", p.Hctl, d.Name, d.Size/d.Block, d.Block)
		d.Devices.Logf(kernel.LevelInfo, "sd %s: [%s] Attached SCSI disk", p.Hctl, d.Name)
	}
}

// LogMedium logs an unreadable sector. The line of the block layer names the hidden path of an NVMe
// drive with two ports.
func (d *Drive) LogMedium(lba uint64) {
	name := d.Name
	if len(d.Places) > 1 && d.Kind.Name == model.KindNVMe {
		name = fmt.Sprintf("nvme%dc%dn1", d.index, d.index)
	}
	if p := d.Places[0]; d.Kind.Letters == "sd" {
		d.Devices.Logf(kernel.LevelInfo, "sd %s: [%s] tag#181 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s", p.Hctl, d.Name)
		d.Devices.Logf(kernel.LevelInfo, "sd %s: [%s] tag#181 Sense Key : Medium Error [current] ", p.Hctl, d.Name)
		d.Devices.Logf(kernel.LevelInfo, "sd %s: [%s] tag#181 Add. Sense: Unrecovered read error", p.Hctl, d.Name)
	}
	d.IO.Errors++
	d.Devices.Logf(kernel.LevelErr, "critical medium error, dev %s, sector %d op 0x0:(READ) flags 0x800 phys_seg 1 prio class 2", name, lba)
}
