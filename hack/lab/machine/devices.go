package machine

import (
	"fmt"
	"strconv"
)

// device is the arguments of a device of QEMU, for the command line and for
// device_add alike.
type device map[string]any

func (d device) set(key string, value any) device {
	switch v := value.(type) {
	case string:
		if v == "" {
			return d
		}
	case int:
		if v == 0 {
			return d
		}
	case uint64:
		if v == 0 {
			return d
		}
	}
	d[key] = value
	return d
}

func node(d Drive) string { return "n-" + d.ID }

// blockdev describes the content of a drive: a raw file that gives space back.
func blockdev(d Drive) map[string]any {
	return map[string]any{"driver": "raw", "node-name": node(d), "discard": "unmap",
		"file": map[string]any{"driver": "file", "filename": d.File, "discard": "unmap"}}
}

// devices lists the parts of a drive in the order of plugging them in; slots
// names the PCI slots that it takes.
func devices(d Drive, slots []int) []device {
	base := device{"id": d.ID, "drive": node(d)}
	base.set("serial", d.Serial)
	if d.Kind != USB {
		base.set("logical_block_size", d.Block).set("physical_block_size", d.PhysBlock)
	}
	switch d.Kind {
	case NVMe:
		return nvme(d, base, slots)
	case SATA:
		base.set("driver", "ide-hd").set("model", d.Model).set("ver", d.Firmware).set("wwn", d.WWN).set("rotation_rate", d.RPM)
	case SCSI, SAS:
		base.set("driver", "scsi-hd").set("vendor", d.Vendor).set("product", d.Model).set("ver", d.Firmware).
			set("wwn", d.WWN).set("rotation_rate", d.RPM).set("device_id", d.Serial)
		base["bus"] = map[Kind]string{SCSI: "vs.0", SAS: "sas.0"}[d.Kind]
	case USB:
		base.set("driver", "usb-storage")
		base["bus"] = "xhci.0"
	case Virtio:
		base.set("driver", "virtio-blk-pci")
		base["bus"] = "slot" + strconv.Itoa(slots[0])
	}
	return []device{base}
}

// nvme is one controller with its namespace, or a subsystem with several
// controllers that share one.
func nvme(d Drive, base device, slots []int) []device {
	if d.Paths == 1 {
		base.set("driver", "nvme")
		base["bus"] = "slot" + strconv.Itoa(slots[0])
		return []device{base}
	}
	subsystem := d.ID + "-subsystem"
	parts := []device{{"driver": "nvme-subsys", "id": subsystem, "nqn": "nqn.2026-01.lab:" + d.Serial}}
	for i := range d.Paths {
		parts = append(parts, device{"driver": "nvme", "id": fmt.Sprintf("%s-%d", d.ID, i), "subsys": subsystem,
			"serial": d.Serial, "bus": "slot" + strconv.Itoa(slots[i])})
	}
	delete(base, "serial")
	base.set("driver", "nvme-ns")
	base["bus"], base["shared"] = d.ID+"-0", true
	return append(parts, base)
}
