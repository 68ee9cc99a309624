package model

import "github.com/drivebay/drivebay/internal/host"

// Kind is a kind of drive.
type Kind string

const (
	KindNVMe    Kind = "nvme"
	KindSATAHDD Kind = "sata-hdd"
	KindSATASSD Kind = "sata-ssd"
	KindSASHDD  Kind = "sas-hdd"
	KindSASSSD  Kind = "sas-ssd"
	KindVirtio  Kind = "virtio"
	KindUSB     Kind = "usb"
)

// EnclosureKind is what the bays are wired to.
type EnclosureKind string

const (
	EnclosureSES EnclosureKind = "ses" // SAS expander with an enclosure processor: SAS and SATA drives
	EnclosurePCI EnclosureKind = "pci" // hot-plug PCI Express slots: NVMe drives
)

// Properties holds what all drives of a kind have in common. The names and the size are the defaults of a
// group.
type Properties struct {
	Name       Kind
	Family     host.Family   // its command set; "" for none
	Letters    string        // kernel name: sd, nvme, vd
	Rotational bool          // as the kernel's queue reports it
	RPM        int           // 0: solid state
	Bay        EnclosureKind // kind of bay that it fits; "" for none
	Vendor     string
	Model      string
	Size       string
	Firmware   string
	OUI        uint64 // company part of its world wide name
	MaxPaths   int
}

// Kinds lists the kinds.
var Kinds = map[Kind]*Properties{}

func init() {
	for _, k := range []Properties{
		{KindNVMe, host.FamilyNVMe, "nvme", false, 0, EnclosurePCI, "", "SAMSUNG MZQL23T8HCLS-00A07", "3.84TB", "GDC5602Q", 0x002538, 2},
		{KindSATAHDD, host.FamilyATA, "sd", true, 7200, EnclosureSES, "ATA", "ST16000NM001G-2KK103", "16TB", "SN03", 0x000C50, 1},
		{KindSATASSD, host.FamilyATA, "sd", false, 0, EnclosureSES, "ATA", "SAMSUNG MZ7LH960HAJR-00005", "960GB", "HXT7404Q", 0x002538, 1},
		{KindSASHDD, host.FamilySCSI, "sd", true, 7200, EnclosureSES, "SEAGATE", "ST16000NM004J", "16TB", "E004", 0x000C50, 2},
		{KindSASSSD, host.FamilySCSI, "sd", false, 0, EnclosureSES, "SAMSUNG", "MZILT3T8HBLS/007", "3.84TB", "GXA0", 0x002538, 2},
		{KindVirtio, "", "vd", true, 0, "", "0x1af4", "", "40GiB", "", 0, 1},
		{KindUSB, host.FamilySCSI, "sd", true, 5400, "", "WD", "Elements 25A3", "2TB", "1021", 0, 1},
	} {
		Kinds[k.Name] = &k
	}
}
