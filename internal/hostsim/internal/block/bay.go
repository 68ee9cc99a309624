package block

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Bay is a slot for a drive in an enclosure.
type Bay struct {
	Row    *row
	Number int
	Drive  *Drive
	folder string // folder of the files locate and fault, or attention
	lights map[string]string
}

// row is an enclosure with its bays.
type row struct {
	Name   string
	Kind   model.EnclosureKind
	number int // among the rows of the same kind
	host   int // SCSI host of the expander
	npem   bool
	m      *Devices
}

// addEnclosure builds a row of empty bays.
func (m *Devices) addEnclosure(e *Enclosure) error {
	if e.Bays < 1 || e.Bays > 96 || e.First < 0 || e.First > 1000 {
		return fmt.Errorf("%s: %d bays from number %d: want 1 to 96 bays", e.Name, e.Bays, e.First)
	}
	r := &row{Name: cmp.Or(e.Name, string(e.Kind)), Kind: e.Kind, npem: e.NPEM, m: m}
	for _, b := range m.Bays {
		if b.Row.Name == r.Name {
			return fmt.Errorf("enclosure %q is there twice", r.Name)
		}
		if b.Row.Kind == r.Kind && b.Row.number >= r.number {
			r.number = b.Row.number + 1
		}
		if e.Kind == model.EnclosurePCI && b.Row.Kind == model.EnclosurePCI && b.Number >= e.First && b.Number < e.First+e.Bays {
			return fmt.Errorf("enclosure %q: there is a PCI slot %d already", r.Name, b.Number)
		}
	}
	switch e.Kind {
	case model.EnclosureSES:
		r.host = m.newHost()
		r.buildProcessor(e.Bays)
	case model.EnclosurePCI:
	default:
		return fmt.Errorf("enclosure %q: kind %q: want ses or pci", r.Name, e.Kind)
	}
	for n := e.First; n < e.First+e.Bays; n++ {
		b := &Bay{Row: r, Number: n, lights: map[string]string{}}
		m.Bays = append(m.Bays, b)
		b.build()
	}
	return nil
}

// newHost allocates a SCSI host number.
func (m *Devices) newHost() int {
	m.hosts++
	return m.hosts - 1
}

// bayFor returns the empty bay where a drive of the kind belongs.
func (m *Devices) bayFor(k *model.Properties, enclosure string, number int) (*Bay, error) {
	var hit *Bay
	for _, b := range m.Bays {
		if b.Number != number || b.Row.Kind != k.Bay || (enclosure != "" && b.Row.Name != enclosure) {
			continue
		}
		if hit != nil {
			return nil, fmt.Errorf("bay %d: both %s and %s have one: give enclosure", number, hit.Row.Name, b.Row.Name)
		}
		hit = b
	}
	switch {
	case hit == nil:
		return nil, fmt.Errorf("bay %d: no enclosure has such a bay for a %s drive", number, k.Name)
	case hit.Drive != nil:
		return nil, fmt.Errorf("bay %d of %s: there is a drive in it already", number, hit.Row.Name)
	}
	return hit, nil
}

// Called reports whether the text names this bay: "7", "07", "Slot 07", "front/7".
func (b *Bay) Called(what string) bool {
	if row, rest, ok := strings.Cut(what, "/"); ok {
		if row != b.Row.Name && row != b.Row.address() {
			return false
		}
		what = rest
	}
	what = strings.TrimSpace(strings.TrimPrefix(what, "Slot"))
	if len(what) > 1 {
		what = strings.TrimLeft(what[:len(what)-1], "0") + what[len(what)-1:]
	}
	return what == fmt.Sprint(b.Number)
}

// hba returns the PCI address of a row's SAS controller. The second path of a dual-ported drive uses
// another controller.
func (r *row) hba(path int) string { return fmt.Sprintf("0000:%02x:00.0", 0x10+2*r.number+path) }

// hostOf returns the SCSI host of a path.
func (r *row) hostOf(path int) int {
	if path == 0 {
		return r.host
	}
	return 64 + r.host
}

// expander returns the folder of a row's SAS expander.
func (r *row) expander(path int) string {
	h := r.hostOf(path)
	return fmt.Sprintf("sys/devices/pci0000:00/0000:00:%02x.0/%s/host%d/port-%d:0/expander-%d:0", 0x02+2*r.number+path, r.hba(path), h, h, h)
}

// processor is the number of the enclosure processor behind the expander, after all bays.
const processor = 200

// address returns the name of the row in /sys/class/enclosure.
func (r *row) address() string { return fmt.Sprintf("%d:0:%d:0", r.host, processor) }

// buildProcessor builds the SCSI Enclosure Services device of a row. drivers/misc/enclosure.c makes
// the files (Documentation/scsi/... does not describe them).
func (r *row) buildProcessor(bays int) {
	t, h, a := r.m.Tree, r.host, r.address()
	dev := fmt.Sprintf("%s/port-%d:0:%d/end_device-%d:0:%d/target%d:0:%d/%s", r.expander(0), h, processor, h, processor, h, processor, a)
	enc := dev + "/enclosure/" + a
	for name, text := range map[string]string{
		"vendor": "SIMVEND \n", "model": "SAS3x28         \n", "rev": "0601\n", "type": "13\n", "state": "running\n", "scsi_level": "7\n",
		"uevent":                         "DEVTYPE=scsi_device\nDRIVER=ses\nMODALIAS=scsi:t-0x0d\n",
		"enclosure/" + a + "/components": fmt.Sprintf("%d\n", bays),
		"enclosure/" + a + "/id":         fmt.Sprintf("%016x\n", 0x500304801f7a0000|uint64(h)<<8|0x3d),
		"enclosure/" + a + "/uevent":     "",
	} {
		t.Put(dev+"/"+name, &sysfs.Node{Text: text, Keep: true})
	}
	t.Keep(enc)
	link := func(path, target string) { t.Put(path, &sysfs.Node{Link: sysfs.Relative(path, target), Keep: true}) }
	link(enc+"/device", dev)
	link(enc+"/subsystem", "sys/class/enclosure")
	link("sys/class/enclosure/"+a, enc)
	link("sys/class/scsi_device/"+a, dev+"/scsi_device/"+a)
	link(dev+"/scsi_device/"+a+"/device", dev)
	r.m.buildHost(h, r.expander(0))
	for path := range 2 { // the second controller of a row is on the other socket
		pci, _, _ := strings.Cut(r.expander(path), "/host")
		t.Put(pci+"/numa_node", &sysfs.Node{Text: fmt.Sprintln(path), Keep: true})
	}
}

// buildHost adds the sysfs entry of a SCSI host.
func (m *Devices) buildHost(h int, below string) {
	name := fmt.Sprintf("host%d", h)
	at := strings.Index(below, "/"+name)
	dir := below[:at] + "/" + name + "/scsi_host/" + name
	m.Tree.Put(dir+"/state", &sysfs.Node{Text: "running\n", Keep: true})
	path := "sys/class/scsi_host/" + name
	m.Tree.Put(path, &sysfs.Node{Link: sysfs.Relative(path, dir), Keep: true})
}

// build adds the entries that a bay has with or without a drive.
func (b *Bay) build() {
	if b.Row.Kind == model.EnclosurePCI {
		b.folder = fmt.Sprintf("sys/bus/pci/slots/%d", b.Number)
		b.put("address", pciSlot(b.Number)[:len("0000:40:00")]+"\n")
		b.put("cur_bus_speed", "16.0 GT/s PCIe\n")
		b.put("max_bus_speed", "16.0 GT/s PCIe\n")
		b.show("adapter", func() string { return sysfs.Bool(b.Drive != nil && b.Drive.Present) })
		b.show("power", func() string { return sysfs.Bool(b.Drive != nil && b.Drive.Present) })
		if b.Row.npem {
			b.buildNPEM()
		} else {
			b.light("attention", "2") // 0 off, 1 on, 2 blink, as the kernel's pciehp has them
		}
		return
	}
	r := b.Row
	b.folder = fmt.Sprintf("%s/Slot %02d", r.m.mustResolve("sys/class/enclosure/"+r.address()), b.Number)
	b.put("slot", fmt.Sprintf("%d\n", b.Number))
	b.put("type", "array device\n")
	b.put("active", "0\n")
	b.put("power_status", "on\n")
	b.put("uevent", "")
	b.show("status", func() string {
		if b.Drive != nil && b.Drive.Present {
			return "OK\n"
		}
		return "not installed\n"
	})
	b.light("locate", "1")
	b.light("fault", "1")
}

func (b *Bay) put(name, text string) {
	b.Row.m.Tree.Put(b.folder+"/"+name, &sysfs.Node{Text: text, Keep: true})
}

func (b *Bay) show(name string, f func() string) {
	b.Row.m.Tree.Put(b.folder+"/"+name, &sysfs.Node{Read: f, Keep: true})
}

// buildNPEM adds the lights of the port above a slot: LED devices named after the port and the meaning
// (drivers/pci/npem.c, since Linux 6.13).
func (b *Bay) buildNPEM() {
	for _, meaning := range []string{"locate", "fail"} {
		led := "sys/class/leds/" + pciPort(b.Number) + ":enclosure:" + meaning
		b.lightAt(led+"/brightness", meaning, "1")
		b.Row.m.Tree.Put(led+"/max_brightness", &sysfs.Node{Text: "1\n", Keep: true})
	}
}

// light adds a light that takes the values 0 to most.
func (b *Bay) light(name, most string) { b.lightAt(b.folder+"/"+name, name, most) }

func (b *Bay) lightAt(file, name, most string) {
	b.lights[name] = "0"
	b.Row.m.Tree.Put(file, &sysfs.Node{Keep: true,
		Read: func() string { return b.lights[name] + "\n" },
		Write: func(s string) error {
			s = strings.TrimSpace(s)
			if len(s) != 1 || s < "0" || s > most {
				return kernel.ErrInvalid
			}
			b.lights[name] = s
			return nil
		}})
}

// connect links a bay and its drive to each other, as the kernel's ses driver does.
func (b *Bay) connect(d *Drive) {
	if b.Row.Kind == model.EnclosureSES {
		d.Link(b.folder+"/device", d.Places[0].device)
		_, slot := sysfs.Split(b.folder)
		d.Link(d.Places[0].device+"/enclosure_device:"+slot, b.folder)
	}
}

func (m *Devices) mustResolve(name string) string {
	n, err := m.Tree.Walk(name, true)
	if err != nil {
		panic(name + ": " + err.Error()) // the builder added it just before
	}
	return n.Path
}
