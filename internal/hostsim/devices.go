package hostsim

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// devices are the drives of a machine, in their bays or on the shelf, and the block devices that the
// kernel has of them.
type devices struct {
	*kernel.Kernel // its lock guards every drive
	drives         []*drive
	bays           []*bay
	hosts          int // SCSI hosts allocated
	byName         map[string]*drive
	highest        map[string]int // kernel name letters -> the lowest index that was never used
	system         system

	blocks map[string]*device // block devices by kernel name
	ghosts []ghost
	fds    fds
	watch  func(Write) // nil: writes are not reported
	writer string      // of the write in progress
}

func newDevices(k *kernel.Kernel) *devices {
	return &devices{Kernel: k, byName: map[string]*drive{}, blocks: map[string]*device{}, highest: map[string]int{}}
}

// build adds the bays and the drives, and plugs the drives in.
func (m *devices) build(enclosures []Enclosure, groups []Group) error {
	for i := range enclosures {
		if err := m.addEnclosure(&enclosures[i]); err != nil {
			return fmt.Errorf("enclosures[%d]: %w", i, err)
		}
	}
	for i := range groups {
		if err := m.addGroup(&groups[i]); err != nil {
			return fmt.Errorf("drives[%d]: %w", i, err)
		}
	}
	if err := m.findSystem(); err != nil {
		return err
	}
	for _, d := range m.drives {
		d.plug(false)
	}
	return nil
}

// maxDrives limits a machine, so that a typing error does not fill the memory.
const maxDrives = 1000

// addGroup adds the drives of a group.
func (m *devices) addGroup(g *Group) error {
	k := model.Kinds[g.Kind]
	if k == nil {
		return fmt.Errorf("kind %q: want one of nvme, sata-hdd, sata-ssd, sas-hdd, sas-ssd, virtio, usb", g.Kind)
	}
	if g.Count < 0 || g.Count+len(m.drives) > maxDrives {
		return fmt.Errorf("count %d: want 1 to %d drives in all", g.Count, maxDrives)
	}
	places := make([]*bay, g.Count)
	if g.Bays != "" {
		if g.Count != 0 {
			return fmt.Errorf("both bays and count: give one of them")
		}
		numbers, err := model.ParseRange(g.Bays)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			b, err := m.bayFor(k, g.Enclosure, n)
			if err != nil {
				return err
			}
			places = append(places, b)
		}
	}
	if len(places) == 0 {
		return fmt.Errorf("no drives: give bays or count")
	}
	for _, b := range places {
		d, err := m.newDrive(g, k, b)
		if err != nil {
			return err
		}
		if b != nil {
			b.drive = d
		}
		m.drives = append(m.drives, d)
	}
	return nil
}

// freeIndex returns the lowest free index of kernel names, or the lowest that was never used.
func (m *devices) freeIndex(letters string, paths int, unused bool) int {
	taken := map[int]bool{}
	for _, d := range m.drives {
		if d.present && d.Kind.Letters == letters {
			for p := range d.Paths {
				taken[d.index+p] = true
			}
		}
	}
	m.ghosts = slices.DeleteFunc(m.ghosts, func(g ghost) bool { return !g.haunts() })
	for _, g := range m.ghosts {
		if g.letters == letters {
			taken[g.index] = true
		}
	}
	n := 0
	if unused {
		n = m.highest[letters]
	}
	for taken[n] || taken[n+paths-1] {
		n++
	}
	m.highest[letters] = max(m.highest[letters], n+paths)
	return n
}

// find returns the drive in a bay, or the last one that was in it; else the drive with a kernel name or
// a serial number. One of the two arguments is empty.
func (m *devices) find(bay, named string) (*drive, error) {
	var hits []*drive
	for _, d := range m.drives {
		is := d.Serial != "" && d.Serial == named || d.present && (d.name == named || slices.Contains(d.names, named))
		if named != "" && is || bay != "" && d.bay != nil && d.bay.called(bay) {
			hits = append(hits, d)
		}
	}
	if i := slices.IndexFunc(hits, func(d *drive) bool { return d.present }); bay != "" && len(hits) > 1 && i >= 0 {
		hits = slices.DeleteFunc(hits, func(d *drive) bool { return !d.present && d.bay == hits[i].bay })
	}
	switch {
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		return nil, fmt.Errorf("%q is more than one drive: say enclosure/bay or a kernel name", bay+named)
	case bay != "":
		return nil, fmt.Errorf("no drive is or was in bay %q", bay)
	}
	return nil, fmt.Errorf("no drive is called %q", named)
}
