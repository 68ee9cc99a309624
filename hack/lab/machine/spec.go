// Package machine is one emulated computer of the lab: described in Go, started
// from a saved state, and broken on demand.
//
// A [Spec] says what is in it, [Start] brings it up, the methods of [Machine]
// do to its hardware what happens to real ones.
package machine

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is how a drive is attached.
type Kind string

const (
	NVMe   Kind = "nvme"   // behind a PCI slot of its own
	SATA   Kind = "sata"   // on the chipset's AHCI controller: cannot be unplugged from outside
	SCSI   Kind = "scsi"   // on a virtio SCSI controller
	SAS    Kind = "sas"    // on an LSI SAS1068 controller: cannot be unplugged from outside
	USB    Kind = "usb"    // a mass storage stick
	Virtio Kind = "virtio" // a paravirtual disk, behind a PCI slot of its own
)

// Drive describes one drive. The zero value of a field leaves it to QEMU.
type Drive struct {
	ID        string // what the machine's methods call it
	Kind      Kind
	Vendor    string // SCSI and SAS
	Model     string // all but NVMe and virtio, where QEMU has one of its own
	Firmware  string
	Serial    string
	WWN       uint64
	Size      int64 // bytes
	Block     int   // logical block size; 512
	PhysBlock int
	RPM       int // 1 is solid state
	// Paths is how many controllers lead to the drive: NVMe only, each behind a
	// slot of its own, Slot and those after it.
	Paths int
	Slot  int    // number of the PCI slot; 0: the next free one
	File  string // keeps the content; "": a blank one that goes with the machine
}

// Spec describes a machine.
type Spec struct {
	Memory int // MiB; 768
	CPUs   int // 2
	Drives []Drive
	// NativeSlots has the PCI slots numbered and lit as servers do it (pciehp):
	// each has a light that Linux can blink, and a drive is asked to leave, which
	// takes six seconds. Else ACPI removes a drive at once, as a hand does.
	NativeSlots bool
	// Link is a network to other machines with the same one.
	Link *Link
	// Shares are folders of the host that the guest sees read-only below /share.
	Shares map[string]string
}

const (
	slots     = 20 // PCI slots that take a drive or a network card
	shares    = 4  // folders of the host
	sataPorts = 6
)

// cold drives are on controllers that cannot be told of a drive later: they
// belong to the machine that is saved.
func (d Drive) cold() bool { return d.Kind == SATA || d.Kind == SAS }

// complete checks a description and fills in what it leaves open.
func (s Spec) complete() (Spec, error) {
	s.Memory, s.CPUs = cmp.Or(s.Memory, 768), cmp.Or(s.CPUs, 2)
	s.Drives = slices.Clone(s.Drives)
	if s.Memory < 256 || s.CPUs < 1 || s.CPUs > 16 {
		return s, fmt.Errorf("%d MiB and %d processors: a machine has 256 MiB or more and 1 to 16 processors", s.Memory, s.CPUs)
	}
	if len(s.Shares) > shares {
		return s, fmt.Errorf("%d shares, there is room for %d", len(s.Shares), shares)
	}
	seen := map[string]bool{}
	sata := 0
	for i := range s.Drives {
		d := &s.Drives[i]
		if err := d.check(); err != nil {
			return s, fmt.Errorf("drive %d (%s): %w", i, d.ID, err)
		}
		if seen["id "+d.ID] || seen["serial "+d.Serial] {
			return s, fmt.Errorf("drive %d: id %q or serial number %q is there already", i, d.ID, d.Serial)
		}
		seen["id "+d.ID], seen["serial "+d.Serial] = true, true
		if d.Kind == SATA {
			sata++
		}
	}
	if sata > sataPorts {
		return s, fmt.Errorf("%d SATA drives, the controller has %d ports", sata, sataPorts)
	}
	return s, nil
}

// idPattern leaves room for the names that are made of an id: a block node of QEMU
// has 31 characters.
var idPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,23}$`)

// ownIDs are devices of every machine.
var ownIDs = []string{"root", "vs", "sas", "xhci", "agent", "agent-port", linkID, linkID + "-card"}

func (d *Drive) check() error {
	if d.ID == "" || d.Serial == "" {
		return errors.New("a drive needs an id and a serial number")
	}
	if !idPattern.MatchString(d.ID) || slices.Contains(ownIDs, d.ID) {
		return fmt.Errorf("id %q: QEMU wants a letter, then letters, digits, - and _, 24 in all, and %s are ours", d.ID, strings.Join(ownIDs, ", "))
	}
	if d.Paths < 0 || d.Paths > 4 || d.Slot < 0 || d.Slot > slots {
		return fmt.Errorf("%d paths from slot %d: there are up to 4 and slots 1 to %d", d.Paths, d.Slot, slots)
	}
	if !slices.Contains([]Kind{NVMe, SATA, SCSI, SAS, USB, Virtio}, d.Kind) {
		return fmt.Errorf("unknown kind %q", d.Kind)
	}
	if d.Size <= 0 {
		d.Size = 1 << 30
	}
	if d.Paths > 1 && d.Kind != NVMe {
		return errors.New("more than one path is for NVMe drives")
	}
	d.Block, d.PhysBlock, d.Paths = cmp.Or(d.Block, 512), cmp.Or(d.PhysBlock, d.Block, 512), cmp.Or(d.Paths, 1)
	// QEMU cuts longer ones off, and then nobody finds the drive again.
	if limit := map[Kind]int{Virtio: 20, SATA: 20, SCSI: 36, SAS: 36, NVMe: 20, USB: 36}[d.Kind]; len(d.Serial) > limit {
		return fmt.Errorf("serial number %q is longer than %d", d.Serial, limit)
	}
	return nil
}
