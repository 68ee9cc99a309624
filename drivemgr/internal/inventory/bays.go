package inventory

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
)

// places maps the addresses of devices to the bays of the machine.
type places struct {
	sysfs          *sysfs.Reader
	skipEnclosures bool // enclosures are not read
	bays           []drivebay.Bay
	// byAddress finds a bay by SCSI H:C:T:L, by SAS end device, by bayKey, or by PCI slot
	// address without its function ("0000:3b:00").
	byAddress map[string]drivebay.Slot
	leds      map[string]map[string]string // PCI function -> NPEM indication -> file
}

func readPlaces(s *sysfs.Reader, skipEnclosures bool) *places {
	p := &places{sysfs: s, skipEnclosures: skipEnclosures, byAddress: map[string]drivebay.Slot{}, leds: map[string]map[string]string{}}
	for _, e := range s.List("sys/class/enclosure") {
		p.readEnclosure("sys/class/enclosure/" + e)
	}
	p.readSASBays()
	p.readPCISlots()
	p.readNPEM()
	return p
}

// readEnclosure lists the slots of one SES enclosure, also empty ones
// (drivers/misc/enclosure.c; drivers/scsi/ses.c makes the device links).
func (p *places) readEnclosure(dir string) {
	s := p.sysfs
	id := s.Text(dir + "/id")
	if id == "" {
		id = s.Base(dir)
	}
	for _, name := range s.List(dir) {
		slotDir := dir + "/" + name
		kind := s.Text(slotDir + "/type")
		if kind != "device" && kind != "array device" {
			continue
		}
		slot := drivebay.Slot{Enclosure: id, Bay: sysfs.Clean(name)}
		if s.Exists(slotDir + "/locate") {
			slot.Locate = slotDir + "/locate"
			slot.Lit = !p.skipEnclosures && Lit(s.Text(slot.Locate))
		}
		if !p.skipEnclosures {
			slot.Status = s.Text(slotDir + "/status")
		}
		if s.Exists(slotDir + "/fault") {
			slot.Fault = slotDir + "/fault"
			slot.FaultLit = !p.skipEnclosures && Lit(s.Text(slot.Fault))
		}
		p.addBay(slot)
		if address := s.Base(slotDir + "/device"); address != "" {
			p.byAddress[address] = slot
		}
		if n := s.Text(slotDir + "/slot"); n != "" {
			p.byAddress[bayKey(id, n)] = slot
		}
	}
}

// addBay adds a bay once: an enclosure with two expanders shows each bay twice.
func (p *places) addBay(slot drivebay.Slot) {
	known := func(b drivebay.Bay) bool { return b.Slot.Enclosure == slot.Enclosure && b.Slot.Bay == slot.Bay }
	if !slices.ContainsFunc(p.bays, known) {
		p.bays = append(p.bays, drivebay.Bay{Slot: slot})
	}
}

// Lit reports whether the content of a locate or attention file stands for a light that is on.
func Lit(text string) bool { return text != "" && text != "0" }

// bayKey returns the key of a slot number in an enclosure. The enclosure class writes the
// id without leading zeros (drivers/scsi/ses.c), the SAS class with them.
func bayKey(enclosure, number string) string {
	if n, err := strconv.ParseUint(strings.TrimPrefix(enclosure, "0x"), 16, 64); err == nil {
		enclosure = strconv.FormatUint(n, 16)
	}
	return "slot " + enclosure + " " + number
}

// readSASBays reads the SAS transport class, which has enclosure and bay of an end
// device where no SES device link exists (scsi_transport_sas).
func (p *places) readSASBays() {
	s := p.sysfs
	for _, name := range s.List("sys/class/sas_device") {
		if !endDevice.MatchString(name) { // an expander is in no bay
			continue
		}
		dir := "sys/class/sas_device/" + name
		bay, enclosure := s.Text(dir+"/bay_identifier"), s.Text(dir+"/enclosure_identifier")
		if bay == "" {
			continue
		}
		slot, known := p.byAddress[bayKey(enclosure, bay)]
		if !known { // setBay lists the bay if it has a drive: enclosures are end devices too
			slot = drivebay.Slot{Enclosure: enclosure, Bay: bay}
		}
		p.byAddress[name] = slot
	}
}

// readPCISlots lists hot-plug slots: the name is what the firmware prints on the
// chassis, the address lacks the function (Documentation/PCI/pciehp, pci_slot).
func (p *places) readPCISlots() {
	s := p.sysfs
	for _, name := range s.List("sys/bus/pci/slots") {
		dir := "sys/bus/pci/slots/" + name
		address := s.Text(dir + "/address")
		if address == "" {
			continue
		}
		slot := drivebay.Slot{Bay: sysfs.Clean(name)}
		// Reading attention fails where the slot has no indicator.
		if b, ok := s.Read(dir + "/attention"); ok {
			slot.Locate, slot.Lit = dir+"/attention", Lit(sysfs.Clean(string(b)))
		}
		p.byAddress[address] = slot
	}
}

// readNPEM lists the enclosure LEDs of PCIe ports since Linux 6.13 (drivers/pci/npem.c),
// named "0000:3b:00.0:enclosure:locate". The address is that of the port above the drive
// or of the drive; the LED of the port stays when the drive is gone.
func (p *places) readNPEM() {
	for _, name := range p.sysfs.List("sys/class/leds") {
		port, indication, ok := strings.Cut(name, ":enclosure:")
		if !ok {
			continue
		}
		if p.leds[port] == nil {
			p.leds[port] = map[string]string{}
		}
		p.leds[port][indication] = "sys/class/leds/" + name + "/brightness"
	}
}

var (
	endDevice   = regexp.MustCompile(`end_device-[0-9:]+`)
	PciFunction = regexp.MustCompile(`[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]`)
)

// give sets the bay of a drive; one of its paths may know the bay and another not.
func (p *places) setBay(d *drivebay.Drive) {
	for _, way := range d.Paths {
		slot, ok := p.byAddress[way.Address]
		if !ok || way.Address == "" {
			slot, ok = p.byAddress[endDevice.FindString(way.SysPath)]
		}
		if ok {
			d.Slot = slot
		} else if d.Transport == drivebay.TransportNVMe {
			p.setPCISlot(d, way)
		}
		if d.Slot.Bay != "" {
			p.addBay(d.Slot)
			return
		}
	}
}

// setPCISlot finds the slot nearest to the drive on the path from the root complex.
func (p *places) setPCISlot(d *drivebay.Drive, way drivebay.Path) {
	functions := PciFunction.FindAllString(way.SysPath, -1)
	if PciFunction.MatchString(way.Address) {
		if full, err := p.sysfs.Resolve("sys/bus/pci/devices/" + way.Address); err == nil {
			functions = PciFunction.FindAllString(full, -1)
		} else if len(functions) == 0 {
			functions = []string{way.Address}
		}
	}
	slices.Reverse(functions)
	for _, f := range functions {
		address, _, _ := strings.Cut(f, ".")
		slot, ok := p.byAddress[address]
		if !ok {
			continue
		}
		d.Slot = slot
		break
	}
	for _, f := range functions {
		leds := p.leds[f]
		if d.Slot.Bay == "" || len(leds) == 0 {
			continue
		}
		if d.Slot.Locate == "" && leds["locate"] != "" {
			d.Slot.Locate, d.Slot.Lit = leds["locate"], Lit(p.sysfs.Text(leds["locate"]))
		}
		if d.Slot.Fault == "" && leds["fail"] != "" {
			d.Slot.Fault, d.Slot.FaultLit = leds["fail"], Lit(p.sysfs.Text(leds["fail"]))
		}
	}
}
