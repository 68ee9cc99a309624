package block

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// builders returns the place of a path to a drive of a kind, and adds the drive's entries. init fills it
// because its functions refer back to it.
var builders map[model.Kind]struct {
	place func(*Drive, int) place
	build func(*Drive)
}

func init() {
	type b = struct {
		place func(*Drive, int) place
		build func(*Drive)
	}
	builders = map[model.Kind]b{
		model.KindNVMe: {placeNVMe, buildNVMe}, model.KindSATAHDD: {placeATA, buildSCSI}, model.KindSATASSD: {placeATA, buildSCSI}, model.KindSASHDD: {placeSAS, buildSCSI},
		model.KindSASSSD: {placeSAS, buildSCSI}, model.KindVirtio: {placeVirtio, buildVirtio}, model.KindUSB: {placeUSB, buildSCSI},
	}
}

// Locations of drives in the machine: the folders below /sys/devices, as a server of this kind has
// them.

// pciSlot returns the PCI address of the drive in a hot-plug slot.
func pciSlot(number int) string { return fmt.Sprintf("%04x:%02x:00.0", number/160, 0x40+number%160) }

// pciPort returns the PCI address of the port above it.
func pciPort(number int) string {
	return fmt.Sprintf("%04x:00:%02x.%d", number/160, 0x10+number/8%10, number%8)
}

func placeNVMe(d *Drive, path int) place {
	pci, port := fmt.Sprintf("0000:%02x:%02x.0", 0x04+d.number%8, d.number/8%32), fmt.Sprintf("0000:00:1c.%d", d.number%8)
	if d.Bay != nil {
		pci = pciSlot(d.Bay.Number)
		port = pciPort(d.Bay.Number)
	}
	if path > 0 { // the second port of the drive, on the other root complex
		pci, port = "1"+pci[1:], "1"+port[1:]
	}
	ctrl := fmt.Sprintf("nvme%d", d.index+path)
	dev := fmt.Sprintf("sys/devices/pci%s:00/%s/%s/nvme/%s", pci[:4], port, pci, ctrl)
	return place{device: dev, pci: pci, Ctrl: ctrl, udevPath: "pci-" + pci + "-nvme-1"}
}

// placeSAS returns a place behind the expander of the bay's row. Without a bay it is directly on a
// separate controller.
func placeSAS(d *Drive, path int) place {
	if d.Bay == nil {
		h := caseHost(d)
		pci := fmt.Sprintf("0000:%02x:00.0", 0x30+d.number%16)
		hctl := fmt.Sprintf("%d:0:0:0", h)
		dev := fmt.Sprintf("sys/devices/pci0000:00/0000:00:0a.0/%s/host%d/port-%d:0/end_device-%d:0/target%d:0:0/%s", pci, h, h, h, h, hctl)
		return scsiPlace(d, dev, hctl, pci, "pci-"+pci+"-sas-0x"+d.Port(path)+"-lun-0", path)
	}
	r, n := d.Bay.Row, d.Bay.Number
	h := r.hostOf(path)
	hctl := fmt.Sprintf("%d:0:%d:0", h, n)
	dev := fmt.Sprintf("%s/port-%d:0:%d/end_device-%d:0:%d/target%d:0:%d/%s", r.expander(path), h, n, h, n, h, n, hctl)
	return scsiPlace(d, dev, hctl, r.hba(path), fmt.Sprintf("pci-%s-sas-exp0x500304801f7a0%02x3f-phy%d-lun-0", r.hba(path), r.host, n), path)
}

// placeATA returns a port of the chipset's AHCI controller. In a bay, a SATA drive is behind the SAS
// expander.
func placeATA(d *Drive, path int) place {
	if d.Bay != nil {
		return placeSAS(d, path)
	}
	h := caseHost(d)
	hctl := fmt.Sprintf("%d:0:0:0", h)
	dev := fmt.Sprintf("sys/devices/pci0000:00/0000:00:17.0/ata%d/host%d/target%d:0:0/%s", h+1, h, h, hctl)
	return scsiPlace(d, dev, hctl, "0000:00:17.0", fmt.Sprintf("pci-0000:00:17.0-ata-%d", h+1), path)
}

func placeUSB(d *Drive, path int) place {
	h := caseHost(d)
	hctl := fmt.Sprintf("%d:0:0:0", h)
	port := d.number%16 + 1
	dev := fmt.Sprintf("sys/devices/pci0000:00/0000:00:14.0/usb2/2-%d/2-%d:1.0/host%d/target%d:0:0/%s", port, port, h, h, hctl)
	return scsiPlace(d, dev, hctl, "0000:00:14.0", fmt.Sprintf("pci-0000:00:14.0-usb-0:%d:1.0-scsi-0:0:0:0", port), path)
}

func placeVirtio(d *Drive, _ int) place {
	pci := fmt.Sprintf("0000:%02x:%02x.0", 0xd0+d.number%32, 1+d.number/32%31)
	dev := fmt.Sprintf("sys/devices/pci0000:00/%s/virtio%d", pci, d.index+1)
	return place{device: dev, block: dev + "/block/" + sysfs.Letters("vd", d.index), pci: pci, udevPath: "pci-" + pci, dev: fmt.Sprintf("254:%d", 16*d.index)}
}

// scsiPlace adds the names of a SCSI disk to a place.
func scsiPlace(d *Drive, dev, hctl, pci, udevPath string, path int) place {
	n := d.index + path
	return place{device: dev, block: dev + "/block/" + sysfs.Letters("sd", n), Hctl: hctl, pci: pci, udevPath: udevPath, dev: sysfs.SDNumber(n, 0)}
}

// caseHost returns the SCSI host of a drive without a bay.
func caseHost(d *Drive) int { return d.Devices.hosts + d.number }
