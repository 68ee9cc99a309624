package block

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// Devices are the drives of a machine, in their bays or on the shelf, and the block devices that the
// kernel has of them.
type Devices struct {
	*kernel.Kernel // its lock guards every drive
	Drives         []*Drive
	Bays           []*Bay
	hosts          int // SCSI hosts allocated
	byName         map[string]*Drive
	highest        map[string]int // kernel name letters -> the lowest index that was never used
	System         system

	Blocks map[string]*Device // block devices by kernel name
	ghosts []ghost
	fds    fds
	watch  func(Write) // nil: writes are not reported
	Writer string      // of the write in progress
}

func New(k *kernel.Kernel) *Devices {
	return &Devices{Kernel: k, byName: map[string]*Drive{}, Blocks: map[string]*Device{}, highest: map[string]int{}}
}

// Build adds the bays and the drives, and plugs the drives in.
func (m *Devices) Build(enclosures []Enclosure, groups []Group) error {
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
	for _, d := range m.Drives {
		d.plug(false)
	}
	return nil
}

// maxDrives limits a machine, so that a typing error does not fill the memory.
const maxDrives = 1000

// addGroup adds the drives of a group.
func (m *Devices) addGroup(g *Group) error {
	k := model.Kinds[g.Kind]
	if k == nil {
		return fmt.Errorf("kind %q: want one of nvme, sata-hdd, sata-ssd, sas-hdd, sas-ssd, virtio, usb", g.Kind)
	}
	if g.Count < 0 || g.Count+len(m.Drives) > maxDrives {
		return fmt.Errorf("count %d: want 1 to %d drives in all", g.Count, maxDrives)
	}
	places := make([]*Bay, g.Count)
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
		d, err := m.NewDrive(g, k, b)
		if err != nil {
			return err
		}
		if b != nil {
			b.Drive = d
		}
		m.Drives = append(m.Drives, d)
	}
	return nil
}

// freeIndex returns the lowest free index of kernel names, or the lowest that was never used.
func (m *Devices) freeIndex(letters string, paths int, unused bool) int {
	taken := map[int]bool{}
	for _, d := range m.Drives {
		if d.Present && d.Kind.Letters == letters {
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

// Find returns the drive in a bay, or the last one that was in it; else the drive with a kernel name or
// a serial number. One of the two arguments is empty.
func (m *Devices) Find(bay, named string) (*Drive, error) {
	var hits []*Drive
	for _, d := range m.Drives {
		is := d.Serial != "" && d.Serial == named || d.Present && (d.Name == named || slices.Contains(d.names, named))
		if named != "" && is || bay != "" && d.Bay != nil && d.Bay.Called(bay) {
			hits = append(hits, d)
		}
	}
	if i := slices.IndexFunc(hits, func(d *Drive) bool { return d.Present }); bay != "" && len(hits) > 1 && i >= 0 {
		hits = slices.DeleteFunc(hits, func(d *Drive) bool { return !d.Present && d.Bay == hits[i].Bay })
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
