package partitions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// Part is a partition as the kernel has it.
type Part struct {
	mounttable.Device
	Number int
	Start  uint64 // bytes
	Title  string // in the GPT; "" while the kernel does not know it
	GUID   string // likewise
	Kind   string // its type; "" while the table was not read
	heard  heard
}

// heard says what of a partition's label is from the database of udev. That is written after the kernel has the
// partition: until then, it is the label of an earlier partition with the same device number (seen in the lab).
type heard struct{ title, guid bool }

// Index holds what the last listing found on the drives, by drive id. Its maps are replaced, never
// changed.
type Index struct {
	Parts   map[string][]Part // in order of their start; a drive that could not be listed is not in it
	Changes uint64            // of parts
	LVM     *LVMIndex
	// LVMError is why the newest report of LVM could not be made; lvm is an older one.
	LVMError string
}

// KeepParts replaces the partitions of all drives by a listing, and what failed in it. What was listed since it began (before) stays, and
// is listed again the next time: the listing may have been later nevertheless. Ledger.Mu is held.
func (e *Catalog) KeepParts(parts map[string][]Part, failed map[string]error, before map[string]uint64) {
	for id, n := range e.Listings {
		if list, there := e.Index.Parts[id]; there && n != before[id] {
			parts[id] = list
			delete(failed, id)
			delete(e.Last, id)
		}
	}
	if !maps.EqualFunc(e.Index.Parts, parts, slices.Equal) {
		e.Index.Changes++
	}
	e.Index.Parts = parts
}

// DropUnknown drops what is kept of drives that the snapshot does not have. Ledger.Mu is held.
func (e *Catalog) DropUnknown(s *drivebay.Snapshot) {
	known := map[string]bool{}
	for _, d := range s.Drives {
		known[d.ID] = true
	}
	dropOthers(e.Tables, known)
	before := len(e.Layouts)
	if dropOthers(e.Layouts, known); len(e.Layouts) != before {
		e.Index.Changes++
	}
	dropOthers(e.Listings, known)
	dropOthers(e.Last, known)
}

func dropOthers[T any](m map[string]T, known map[string]bool) {
	maps.DeleteFunc(m, func(id string, _ T) bool { return !known[id] })
}

// RelistDrive lists one drive again, after a change to it.
func (e *Catalog) RelistDrive(ctx context.Context, d *drivebay.Drive) error {
	list, err := e.partsOf(ctx, d)
	if err != nil {
		return fmt.Errorf("drive %s: partitions: %w", d.ID, err)
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	parts := make(map[string][]Part, len(e.Index.Parts)+1)
	for id, p := range e.Index.Parts {
		parts[id] = p
	}
	parts[d.ID] = list
	e.Index.Parts = parts
	e.Index.Changes++
	e.Listings[d.ID]++
	delete(e.Last, d.ID)
	return nil
}

// PartsOn returns the partitions of a drive, as last listed.
func (e *Catalog) PartsOn(drive string) []Part {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Index.Parts[drive]
}

// Partition returns the partition of a volume, as last listed.
func (e *Catalog) Partition(v *drivebay.Volume) (Part, bool) {
	if len(v.Location.Drives) == 0 {
		return Part{}, false
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Listed(v)
}

// Listed is Partition for a caller that holds Ledger.Mu. A partition that is being copied to has another
// name.
func (e *Catalog) Listed(v *drivebay.Volume) (Part, bool) {
	parts := e.Index.Parts[v.Location.Drives[0]]
	title := ledger.PartitionName(v.ID)
	r := e.Ledger.Records[v.ID]
	if r == nil {
		return Instanced(parts, title, v.Location.Partition)
	}
	is := func(l drivebay.Location) bool { return v.Location.Partition == l.Partition }
	if r.Work != nil && r.Work.Move != nil && is(r.Work.Move.To) {
		if p, ok := Instanced(parts, r.Work.Move.Name, v.Location.Partition); ok {
			return p, true
		}
		if !is(r.Volume.Location) {
			return Part{}, false // a partition with the volume's name there is not the target
		}
	}
	if is(r.Volume.Location) && e.OldCopy(v.Location.Drives[0], v.Location.Partition) {
		return Part{}, false // the record is older than the move
	}
	if m := MoveOf(r); m != nil && is(m.From) {
		title = cmp.Or(m.OldName, title)
	}
	return Instanced(parts, title, v.Location.Partition)
}

// LeastOf returns how large the piece of a volume is at least, unless another program has made it smaller. The room for the metadata of DRBD
// counts once they are written: a growth makes it.
func LeastOf(v *drivebay.Volume) uint64 {
	n := v.Size
	if v.Encrypted() {
		n += LUKSHeader
	}
	if v.Replication != nil && v.Replication.Disk > 0 {
		n += v.Replication.Room
	}
	return n
}

// PieceSize returns the size of the partition or logical volume of a volume, as last listed. Ledger.Mu is held.
func (e *Catalog) PieceSize(v *drivebay.Volume) (size uint64, listed bool) {
	if v.Location.OnLVM() {
		if lv := LVIn(e.Index.LVM.Group(v.Location.VG), v.Location); lv != nil {
			return lv.Size, true
		}
		return 0, false
	}
	if len(v.Location.Drives) == 0 {
		return 0, false
	}
	p, listed := e.Listed(v)
	return p.Size, listed
}

// SmallerText says that a piece is smaller than what was recorded: another program has made it smaller, or has
// restored the partition table or the metadata of LVM from before a growth.
func SmallerText(have, least uint64) string {
	return fmt.Sprintf("it has %s, and had %s", SizeText(have), SizeText(least))
}

// Instanced returns the partition of a name and a GUID. One whose GUID is not known is found by its name,
// only to be read: the table is read before anything is written.
func Instanced(parts []Part, title, guid string) (Part, bool) {
	if i := slices.IndexFunc(parts, func(p Part) bool { return p.Title == title && p.GUID != "" && strings.EqualFold(p.GUID, guid) }); i >= 0 {
		return parts[i], true
	}
	if i := slices.IndexFunc(parts, func(p Part) bool { return p.Title == title && SameGUID(p.GUID, guid) }); i >= 0 {
		return parts[i], true
	}
	return Part{}, false
}

// Ambiguous reports whether a partition was found by its name alone, and another one of its drive has that
// name: a move within the drive leaves two for a while.
func Ambiguous(parts []Part, p Part) bool {
	return p.GUID == "" && slices.ContainsFunc(parts, func(q Part) bool { return q.Title == p.Title && q.Number != p.Number })
}

// SameGUID reports whether two GUIDs can be of one partition; an empty one is not known.
func SameGUID(a, b string) bool { return a == "" || b == "" || strings.EqualFold(a, b) }

// Named returns the partition with that name.
func Named(parts []Part, title string) (Part, bool) {
	if i := slices.IndexFunc(parts, func(p Part) bool { return p.Title == title }); i >= 0 {
		return parts[i], true
	}
	return Part{}, false
}
