package block

import (
	"cmp"
	"fmt"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// buildSCSI adds the SCSI devices of a drive, one per path, and their disks.
func buildSCSI(d *Drive) {
	for path := range d.Places {
		p := &d.Places[path]
		name := sysfs.Letters("sd", d.index+path)
		if path == 0 {
			d.Name = name
		}
		d.register(name)
		buildSCSIDevice(d, p, path)
		buildBlock(d, blockDevice{dir: p.block, name: name, dev: p.dev, device: p.device, partScan: 256})
		addUdev(d, p.dev, udevSCSI(d, p)...)
	}
}

// buildSCSIDevice adds the folder of a SCSI device (drivers/scsi/scsi_sysfs.c).
func buildSCSIDevice(d *Drive, p *place, path int) {
	d.Files(p.device, "access_state", "", "blacklist", "", "device_blocked", "0\n", "device_busy", "0\n", "dh_state", "detached\n", "eh_timeout", "10\n",
		"evt_media_change", "0\n", "evt_capacity_change_reported", "0\n", "evt_inquiry_change_reported", "0\n", "iocounterbits", "32\n", "modalias", "scsi:t-0x00\n",
		"vendor", fmt.Sprintf("%-8.8s\n", d.Vendor), "model", fmt.Sprintf("%-16.16s\n", d.Model), "rev", fmt.Sprintf("%-4.4s\n", d.Revision()),
		"queue_depth", "32\n", "queue_type", "simple\n", "rescan", "", "scsi_level", "7\n", "timeout", "30\n", "type", "0\n",
		"uevent", "DEVTYPE=scsi_device\nDRIVER=sd\nMODALIAS=scsi:t-0x00\n")
	d.Add(p.device+"/delete", &sysfs.Node{Write: d.letGo(path)})
	d.Live(p.device+"/state", func() string { return d.Faults.scsiState() + "\n" })
	for name, n := range map[string]*uint64{"iodone_cnt": &d.IO.done, "ioerr_cnt": &d.IO.Errors, "iotmo_cnt": &d.IO.Timeouts} {
		d.Live(p.device+"/"+name, func() string { return fmt.Sprintf("%#x\n", *n) })
	}
	d.Live(p.device+"/iorequest_cnt", func() string { return fmt.Sprintf("%#x\n", d.IO.done+uint64(d.inflight())) })
	buildVPD(d, p, path)
	d.Link(p.device+"/subsystem", "sys/bus/scsi")
	d.Tree.Keep("sys/bus/scsi")
	class := p.device + "/scsi_device/" + p.Hctl
	d.Link(class+"/device", p.device)
	d.Link("sys/class/scsi_device/"+p.Hctl, class)
	sg := fmt.Sprintf("sg%d", d.index+path)
	generic := p.device + "/scsi_generic/" + sg
	d.File(generic+"/dev", fmt.Sprintf("21:%d\n", d.index+path))
	d.Link(generic+"/device", p.device)
	d.Link("sys/class/scsi_generic/"+sg, generic)
	if d.Kind.Bay == model.EnclosureSES && (d.Family() == host.FamilySCSI || d.Bay != nil) {
		d.File(p.device+"/sas_address", "0x"+d.Port(path)+"\n")
		d.File(p.device+"/sas_device_handle", fmt.Sprintf("%#06x\n", 0x0a+d.number))
	}
}

// buildVPD adds the kernel's copies of the vital product data.
func buildVPD(d *Drive, p *place, path int) {
	if d.WWN != 0 || d.Serial != "" {
		d.File(p.device+"/wwid", d.Wwid()+"\n")
	}
	for name, page := range d.KernelCopies(path) {
		d.File(p.device+"/"+name, string(page))
	}
}

func udevSCSI(d *Drive, p *place) []string {
	bus := map[model.Kind]string{model.KindSATAHDD: "ata", model.KindSATASSD: "ata", model.KindUSB: "usb"}[d.Kind.Name]
	lines := []string{
		"S:disk/by-path/" + p.udevPath, "S:disk/by-id/" + cmp.Or(bus, "scsi") + "-" + sysfs.Word(d.Model) + "_" + d.Serial,
		"E:ID_TYPE=disk", "E:ID_BUS=" + cmp.Or(bus, "scsi"), "E:ID_VENDOR=" + sysfs.Word(d.Vendor), "E:ID_MODEL=" + sysfs.Word(d.Model), "E:ID_REVISION=" + d.Revision(),
		"E:ID_PATH=" + p.udevPath,
	}
	if d.Serial != "" {
		lines = append(lines, "E:ID_SERIAL="+sysfs.Word(d.Model)+"_"+d.Serial, "E:ID_SERIAL_SHORT="+d.Serial, "E:ID_SCSI_SERIAL="+d.Serial)
	}
	if d.WWN != 0 {
		wwn := fmt.Sprintf("0x%016x", d.WWN)
		lines = append(lines, "S:disk/by-id/wwn-"+wwn, "E:ID_WWN="+wwn, "E:ID_WWN_WITH_EXTENSION="+wwn)
	}
	if bus == "ata" {
		lines = append(lines, "E:ID_ATA=1", "E:ID_ATA_SATA=1", "E:ID_ATA_FEATURE_SET_SMART=1", "E:ID_ATA_FEATURE_SET_SMART_ENABLED=1")
	}
	return lines
}

// buildVirtio adds a virtio disk.
func buildVirtio(d *Drive) {
	p := &d.Places[0]
	d.Name = sysfs.Letters("vd", d.index)
	d.register(d.Name)
	d.Files(p.device, "device", "0x0002\n", "vendor", "0x1af4\n", "status", "0x0000000f\n", "modalias", "virtio:d00000002v00001AF4\n", "uevent", "DRIVER=virtio_blk\nMODALIAS=virtio:d00000002v00001AF4\n")
	buildBlock(d, blockDevice{dir: p.block, name: d.Name, dev: p.dev, device: p.device, partScan: 256})
	d.Files(p.block, "serial", d.Serial, "cache_type", "write back\n")
	addUdev(d, p.dev, "S:disk/by-path/"+p.udevPath, "S:disk/by-id/virtio-"+d.Serial, "E:ID_SERIAL="+d.Serial, "E:ID_PATH="+p.udevPath)
}
