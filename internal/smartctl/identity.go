package smartctl

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

func identity(ev *drivebay.Evidence, root node) {
	id := &ev.Identity
	id.Vendor = first(root, "scsi_vendor", "vendor")
	id.Model = first(root, "model_name", "scsi_model_name", "scsi_product", "product")
	id.Serial = root.at("serial_number").text()
	id.Firmware = first(root, "firmware_version", "scsi_revision", "revision")
	id.WWN = wwn(root)
	if n, ok := root.at("user_capacity").wide("bytes"); ok {
		id.Size = n
	} else if n, ok := root.at("nvme_namespaces").first().at("size").wide("bytes"); ok {
		id.Size = n
	} else if n, ok := root.wide("nvme_total_capacity"); ok {
		id.Size = n
	}
	// 0001h is solid state (ACS-4, IDENTIFY DEVICE word 217); smartctl writes 0.
	if rpm, ok := root.at("rotation_rate").within(0xFFFE); ok && rpm > 1 {
		id.RPM = int(rpm)
	}
}

func first(root node, keys ...string) string {
	for _, k := range keys {
		if s := root.at(k).text(); s != "" {
			return s
		}
	}
	return ""
}

func (n node) first() node {
	if l := n.list(); len(l) > 0 {
		return l[0]
	}
	return node{t: n.t}
}

// wwn returns the world wide name in the format of the kernel's wwid.
func wwn(root node) string {
	naa, okNAA := root.at("wwn", "naa").within(0xF)
	oui, okOUI := root.at("wwn", "oui").within(0xFFFFFF)
	id, okID := root.at("wwn", "id").within(1<<36 - 1)
	if okNAA && okOUI && okID {
		return fmt.Sprintf("naa.%x%06x%09x", naa, oui, id)
	}
	if s := strings.ToLower(root.at("logical_unit_id").text()); len(s) > 2 {
		return "naa." + strings.TrimPrefix(s, "0x")
	}
	ns := root.at("nvme_namespaces").first()
	if s := ns.at("nguid").text(); s != "" {
		return "eui." + strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(s))
	}
	oui, okOUI = ns.at("eui64", "oui").within(0xFFFFFF)
	ext, okExt := ns.at("eui64", "ext_id").within(1<<40 - 1)
	if okOUI && okExt && oui|ext != 0 {
		return fmt.Sprintf("eui.%06x%010x", oui, ext)
	}
	return ""
}

// protocol returns the protocol of the drive. The type of a RAID controller hides it
// ("megaraid,5"), so smartctl's own field comes first, then the prefix of most keys of the
// document.
func protocol(root node) drivebay.Protocol {
	switch strings.ToUpper(root.at("device", "protocol").text()) {
	case "ATA":
		return drivebay.ProtocolATA
	case "NVME":
		return drivebay.ProtocolNVMe
	case "SCSI":
		return drivebay.ProtocolSCSI
	}
	obj, _ := root.v.(map[string]any)
	votes := map[string]int{}
	for key, v := range obj {
		if family, _, ok := strings.Cut(key, "_"); ok && v != nil {
			votes[family]++
		}
	}
	best, most := drivebay.ProtocolNone, 0
	for _, f := range []struct {
		prefix string
		is     drivebay.Protocol
	}{{"ata", drivebay.ProtocolATA}, {"nvme", drivebay.ProtocolNVMe}, {"scsi", drivebay.ProtocolSCSI}} {
		if votes[f.prefix] > most {
			best, most = f.is, votes[f.prefix]
		}
	}
	return best
}

// wires holds the device types (smartctl(8), -d) that imply a transport. "sat" is last:
// sat+megaraid is SATA behind a SAS controller, and sat inside usb is the bridge's.
var wires = []struct {
	prefix string
	wire   drivebay.Transport
}{
	{"usb", drivebay.TransportUSB},
	{"snt", drivebay.TransportUSB}, // sntjmicron, sntasmedia, sntrealtek: NVMe behind a USB bridge
	{"nvme", drivebay.TransportNVMe},
	{"ata", drivebay.TransportSATA},
	{"3ware", drivebay.TransportSATA},
	{"hpt", drivebay.TransportSATA},
	{"marvell", drivebay.TransportSATA},
	{"sat", drivebay.TransportSATA},
}

// raids holds the types of controllers whose SCSI drives are SAS drives.
var raids = []string{"megaraid", "cciss", "aacraid", "areca", "sssraid"}

// scsiWires maps the protocol identifier of SPC-5, table "PROTOCOL IDENTIFIER", to the transport.
var scsiWires = map[uint64]drivebay.Transport{
	0x0: drivebay.TransportFC,
	0x1: drivebay.TransportSCSI,
	0x5: drivebay.TransportSCSI, // iSCSI
	0x6: drivebay.TransportSAS,
	0x8: drivebay.TransportSATA,
	0x9: drivebay.TransportUSB, // UAS
}

func transport(root node, ev *drivebay.Evidence) drivebay.Transport {
	kind := strings.ToLower(root.at("device", "type").text())
	if strings.Contains(strings.ToLower(root.at("device", "info_name").text()), "usb") {
		return drivebay.TransportUSB
	}
	for _, w := range wires {
		if strings.HasPrefix(kind, w.prefix) {
			return w.wire
		}
	}
	switch ev.Protocol {
	case drivebay.ProtocolNVMe:
		return drivebay.TransportNVMe
	case drivebay.ProtocolATA:
		return drivebay.TransportSATA
	case drivebay.ProtocolNone:
		return drivebay.TransportUnknown
	}
	if id, ok := root.at("scsi_transport_protocol", "value").uint(); ok {
		if w, known := scsiWires[id]; known {
			return w
		}
	}
	for _, r := range raids {
		if strings.HasPrefix(kind, r) {
			return drivebay.TransportSAS
		}
	}
	return drivebay.TransportSCSI
}

// medium returns the type of the drive. smartctl omits the rotation rate where the drive does not
// report it (anything before ATA8); then the model, TRIM and the attributes decide.
func medium(ev *drivebay.Evidence, root node) drivebay.Type {
	if ev.Protocol == drivebay.ProtocolNVMe {
		return drivebay.TypeNVMe
	}
	if rpm, ok := root.at("rotation_rate").uint(); ok {
		if rpm > 1 {
			return drivebay.TypeHDD
		}
		return drivebay.TypeSSD
	}
	upper := strings.ToUpper(ev.Identity.Model + " " + root.at("model_family").text())
	if root.at("trim", "supported").isTrue() || strings.Contains(upper, "SSD") || strings.Contains(upper, "SOLID STATE") {
		return drivebay.TypeSSD
	}
	if ev.ATA != nil {
		return mediumByAttributes(ev.ATA.Attributes)
	}
	return drivebay.TypeUnknown
}

// mediumByAttributes derives the type from attributes: only a hard disk has a spin-up time and
// seeks.
func mediumByAttributes(attrs []drivebay.Attribute) drivebay.Type {
	platter := 0
	for _, a := range attrs {
		switch {
		case strings.Contains(a.Name, "Wear") || strings.Contains(a.Name, "NAND") || strings.Contains(a.Name, "SSD"):
			return drivebay.TypeSSD
		case strings.HasPrefix(a.Name, "Spin_") || strings.HasPrefix(a.Name, "Seek_") || strings.HasPrefix(a.Name, "Load_"):
			platter++
		}
	}
	if platter > 0 {
		return drivebay.TypeHDD
	}
	return drivebay.TypeUnknown
}
