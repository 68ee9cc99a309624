package drivemgr

import (
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// places knows which bay of the machine is behind which address.
type places struct {
	sysfs *sysfs
	bays  []drivebay.Bay
	// byAddress finds a bay by SCSI H:C:T:L, by SAS end device, or by PCI slot
	// address without its function ("0000:3b:00").
	byAddress map[string]drivebay.Slot
	leds      map[string]string // PCI function -> NPEM locate LED
}

func readPlaces(s *sysfs) *places {
	p := &places{sysfs: s, byAddress: map[string]drivebay.Slot{}, leds: map[string]string{}}
	for _, e := range s.list("sys/class/enclosure") {
		p.readEnclosure("sys/class/enclosure/" + e)
	}
	p.readSASBays()
	p.readPCISlots()
	p.readNPEM()
	return p
}

// readEnclosure lists the slots of one SES enclosure, empty ones too
// (drivers/misc/enclosure.c; drivers/scsi/ses.c makes the device links).
func (p *places) readEnclosure(dir string) {
	s := p.sysfs
	id := s.text(dir + "/id")
	if id == "" {
		id = s.base(dir)
	}
	for _, name := range s.list(dir) {
		slotDir := dir + "/" + name
		kind := s.text(slotDir + "/type")
		if kind != "device" && kind != "array device" {
			continue
		}
		slot := drivebay.Slot{Enclosure: id, Bay: clean(name)}
		if s.exists(slotDir + "/locate") {
			slot.Locate, slot.Lit = slotDir+"/locate", lit(s.text(slotDir+"/locate"))
		}
		if s.exists(slotDir + "/fault") {
			slot.Fault = slotDir + "/fault"
		}
		p.addBay(slot)
		if s.exists(slotDir + "/device") {
			p.byAddress[s.base(slotDir+"/device")] = slot
		}
		if n := s.text(slotDir + "/slot"); n != "" {
			p.byAddress["slot "+id+" "+n] = slot
		}
	}
}

// addBay lists a bay once: an enclosure with two expanders shows each bay twice.
func (p *places) addBay(slot drivebay.Slot) {
	known := func(b drivebay.Bay) bool { return b.Slot.Enclosure == slot.Enclosure && b.Slot.Bay == slot.Bay }
	if !slices.ContainsFunc(p.bays, known) {
		p.bays = append(p.bays, drivebay.Bay{Slot: slot})
	}
}

func lit(text string) bool { return text != "" && text != "0" }

// readSASBays asks the SAS transport class, which knows enclosure and bay of an
// end device where no SES device link exists (scsi_transport_sas).
func (p *places) readSASBays() {
	s := p.sysfs
	for _, name := range s.list("sys/class/sas_device") {
		dir := "sys/class/sas_device/" + name
		bay, enclosure := s.text(dir+"/bay_identifier"), s.text(dir+"/enclosure_identifier")
		if bay == "" {
			continue
		}
		slot, known := p.byAddress["slot "+enclosure+" "+bay]
		if !known {
			slot = drivebay.Slot{Enclosure: enclosure, Bay: bay}
			p.addBay(slot)
		}
		p.byAddress[name] = slot
	}
}

// readPCISlots lists hot-plug slots: the name is what the firmware printed on the
// chassis, the address lacks the function (Documentation/PCI/pciehp, pci_slot).
func (p *places) readPCISlots() {
	s := p.sysfs
	for _, name := range s.list("sys/bus/pci/slots") {
		dir := "sys/bus/pci/slots/" + name
		address := s.text(dir + "/address")
		if address == "" {
			continue
		}
		slot := drivebay.Slot{Bay: clean(name)}
		// attention reads as an error where the slot has no indicator.
		if b, ok := s.read(dir + "/attention"); ok {
			slot.Locate, slot.Lit = dir+"/attention", lit(clean(string(b)))
		}
		p.byAddress[address] = slot
	}
}

// readNPEM lists the enclosure LEDs that PCIe ports offer since Linux 6.13
// (drivers/pci/npem.c), as "0000:3b:00.0:enclosure:locate".
func (p *places) readNPEM() {
	for _, name := range p.sysfs.list("sys/class/leds") {
		if port, ok := strings.CutSuffix(name, ":enclosure:locate"); ok {
			p.leds[port] = "sys/class/leds/" + name + "/brightness"
		}
	}
}

var (
	endDevice   = regexp.MustCompile(`end_device-[0-9:]+`)
	pciFunction = regexp.MustCompile(`[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]`)
)

// give puts a drive into its bay, which one of its ways may know and not another.
func (p *places) give(d *drivebay.Drive) {
	for _, way := range d.Paths {
		slot, ok := p.byAddress[way.Address]
		if !ok || way.Address == "" {
			slot, ok = p.byAddress[endDevice.FindString(way.SysPath)]
		}
		if ok {
			d.Slot = slot
		} else if d.Transport == drivebay.TransportNVMe {
			p.givePCI(d, way)
		}
		if d.Slot.Bay != "" {
			return
		}
	}
}

// givePCI finds the slot nearest to the drive on the way from the root complex.
func (p *places) givePCI(d *drivebay.Drive, way drivebay.Path) {
	functions := pciFunction.FindAllString(way.SysPath, -1)
	if pciFunction.MatchString(way.Address) {
		if full, err := p.sysfs.Resolve("sys/bus/pci/devices/" + way.Address); err == nil {
			functions = pciFunction.FindAllString(full, -1)
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
		if led := p.leds[f]; led != "" && d.Slot.Locate == "" && d.Slot.Bay != "" {
			d.Slot.Locate, d.Slot.Lit = led, lit(p.sysfs.text(led))
		}
	}
	if d.Slot.Bay != "" {
		p.addBay(d.Slot)
	}
}
