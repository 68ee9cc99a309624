package block

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// buildNVMe adds the controllers of a drive and its namespace. With one port the namespace is below
// the controller. With two the kernel puts a head below the subsystem and hides the paths
// (drivers/nvme/host/multipath.c).
func buildNVMe(d *Drive) {
	d.Name = fmt.Sprintf("nvme%dn1", d.index)
	subsys := fmt.Sprintf("sys/devices/virtual/nvme-subsystem/nvme-subsys%d", d.index)
	nqn := "nqn.2014.08.org.nvmexpress:144d144d" + d.Serial + d.Model
	d.Files(subsys, "model", fmt.Sprintf("%-40.40s\n", d.Model), "serial", fmt.Sprintf("%-20.20s\n", d.Serial), "firmware_rev", fmt.Sprintf("%-8.8s\n", d.Firmware),
		"subsysnqn", nqn+"\n", "subsystype", "nvm\n", "iopolicy", "numa\n", "uevent", "")
	d.Link(subsys+"/subsystem", "sys/class/nvme-subsystem")
	d.Link("sys/class/nvme-subsystem/"+fmt.Sprintf("nvme-subsys%d", d.index), subsys)

	number := 2 * d.index * (maxNVMeParts + 1)
	for i := range d.Places {
		p := &d.Places[i]
		buildController(d, p, i, nqn)
		d.Link(subsys+"/"+p.Ctrl, p.device)
		if len(d.Places) > 1 {
			name := fmt.Sprintf("nvme%dc%dn1", d.index, d.index+i)
			buildBlock(d, blockDevice{dir: p.device + "/" + name, name: name, device: p.device, hidden: true})
			buildNamespace(d, p.device+"/"+name)
		}
		p.dev = fmt.Sprintf("259:%d", number)
	}
	p := &d.Places[0]
	p.block = p.device + "/" + d.Name
	device := p.device
	if len(d.Places) > 1 {
		p.block, device = subsys+"/"+d.Name, subsys
	}
	d.register(d.Name)
	buildBlock(d, blockDevice{dir: p.block, name: d.Name, dev: p.dev, device: device, partScan: 256})
	buildNamespace(d, p.block)
	addUdev(d, p.dev, "S:disk/by-path/"+p.udevPath, "S:disk/by-id/nvme-"+sysfs.Word(d.Model)+"_"+d.Serial, "S:disk/by-id/nvme-"+d.Wwid(),
		"E:ID_SERIAL_SHORT="+d.Serial, "E:ID_WWN="+d.Wwid(), "E:ID_MODEL="+d.Model, "E:ID_REVISION="+d.Firmware, "E:ID_NSID=1",
		"E:ID_SERIAL="+sysfs.Word(d.Model)+"_"+d.Serial+"_1", "E:ID_PATH="+p.udevPath)
}

// maxNVMeParts separates the device numbers of drives and their partitions.
const maxNVMeParts = 3

// buildController adds an NVMe controller and its PCI device.
func buildController(d *Drive, p *place, path int, nqn string) {
	pciDir, _ := sysfs.Split(p.device)
	pciDir, _ = sysfs.Split(pciDir)
	d.Files(pciDir, "class", "0x010802\n", "vendor", "0x144d\n", "device", "0xa80a\n", "subsystem_vendor", "0x144d\n", "subsystem_device", "0xa813\n", "enable", "1\n",
		"current_link_speed", "16.0 GT/s PCIe\n", "current_link_width", "4\n", "max_link_speed", "16.0 GT/s PCIe\n", "max_link_width", "4\n", "numa_node", d.numaNode(path),
		"uevent", "DRIVER=nvme\nPCI_CLASS=10802\nPCI_ID=144D:A80A\nPCI_SLOT_NAME="+p.pci+"\n")
	d.Add(pciDir+"/remove", &sysfs.Node{Write: d.letGo(path)})
	d.Link("sys/bus/pci/devices/"+p.pci, pciDir)
	d.Files(p.device, "address", p.pci+"\n", "cntlid", fmt.Sprintln(path+1), "cntrltype", "io\n", "dev", fmt.Sprintf("239:%d\n", d.index+path), "firmware_rev", fmt.Sprintf("%-8.8s\n", d.Firmware),
		"kato", "0\n", "model", fmt.Sprintf("%-40.40s\n", d.Model), "numa_node", d.numaNode(path), "queue_count", "17\n", "rescan_controller", "", "reset_controller", "",
		"serial", fmt.Sprintf("%-20.20s\n", d.Serial), "sqsize", "1023\n", "subsysnqn", nqn+"\n", "transport", "pcie\n",
		"uevent", fmt.Sprintf("MAJOR=239\nMINOR=%d\nDEVNAME=%s\nNVME_TRTYPE=pcie\n", d.index+path, p.Ctrl))
	d.Live(p.device+"/state", func() string { return d.Faults.nvmeState() + "\n" })
	d.Link(p.device+"/device", pciDir)
	d.Link(p.device+"/subsystem", "sys/class/nvme")
	d.Link("sys/class/nvme/"+p.Ctrl, p.device)
	d.register(p.Ctrl)
}

// numaNode returns the node of a controller: the second port of a drive is on the other socket, and so are
// four of eight slots.
func (d *Drive) numaNode(path int) string {
	if d.Bay != nil {
		path += d.Bay.Number / 4
	}
	return fmt.Sprintln(path % 2)
}

func buildNamespace(d *Drive, dir string) {
	d.Files(dir, "nsid", "1\n", "wwid", d.Wwid()+"\n", "ana_state", "optimized\n")
	if d.WWN != 0 {
		g := d.Nguid()
		d.Files(dir, "nguid", fmt.Sprintf("%s-%s-%s-%s-%s\n", g[:8], g[8:12], g[12:16], g[16:20], g[20:]))
	}
}
