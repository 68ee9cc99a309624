package write

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// EntryOfMove returns the partition that a volume is copied to.
func EntryOfMove(r *drivebay.VolumeRecord) Entry {
	m := partitions.MoveOf(r)
	return Entry{Drive: m.To.Drives[0], Guid: m.To.Partition, Name: m.Name, Kind: FinalType(&r.Volume), size: inventory.SizeOfWork(r), owner: r.Volume.ID, attributes: partitions.AttributesOf(&r.Volume)}
}

// Entry is a partition that is to be in the table of a drive.
type Entry struct {
	Drive, Guid, Name, Kind string
	size                    uint64      // 0: the largest free range
	owner                   string      // id of the volume that it is made for
	taken                   func() bool // reports whether another volume needs it now; nil: none can
	attributes              uint16      // of the entry, see AttributesOf; 0: unchanged
}

// addTo adds the entry to a table in memory.
func (n Entry) addTo(t *gpt.Table, size uint64) (gpt.Partition, error) {
	p, err := t.Add(size, gpt.Align, n.Kind, n.Guid, n.Name)
	for i := range t.Partitions {
		if err == nil && t.Partitions[i].Number == p.Number {
			n.setAttributes(&t.Partitions[i])
		}
	}
	return p, err
}

func (n Entry) setAttributes(p *gpt.Partition) {
	if n.attributes != 0 { // only MarkReplicated removes the mark
		p.TypeAttributes = n.attributes | p.TypeAttributes&partitions.AttributeReplicated
	}
}

// OfVolume returns the table entry of a volume.
func OfVolume(r *drivebay.VolumeRecord) Entry {
	v := &r.Volume
	return Entry{Drive: v.Location.Drives[0], Guid: v.Location.Partition, Name: ledger.PartitionName(v.ID), Kind: ledger.TypeMaking, size: v.Size + place.OverheadOf(v), owner: v.ID, attributes: partitions.AttributesOf(v)}
}

// Removing returns the entry with the mark of a removal that has begun.
func (n Entry) Removing() Entry {
	n.attributes |= partitions.AttributeRemoving
	return n
}

// EntryOfPV returns the table entry of a physical volume.
func EntryOfPV(owner, drive, uuid string) Entry {
	return Entry{Drive: drive, Guid: partitions.PVGUID(uuid), Name: ledger.PVName(uuid), Kind: ledger.TypePV, owner: owner}
}

// Left returns the entry with the mark of a copy that its volume has left.
func (n Entry) Left() Entry {
	n.attributes |= partitions.AttributeMoved
	return n
}

// FinalType returns the type of a volume's partition once the volume is finished. A volume that awaits its
// passphrase stays unfinished: only such a partition is ever formatted.
func FinalType(v *drivebay.Volume) string {
	if v.AwaitsKey {
		return ledger.TypeMaking
	}
	for kind, is := range ledger.Types {
		if is.Mode == v.Mode && is.Encrypted == v.Encrypted() {
			return kind
		}
	}
	return ledger.TypeMaking // every finished volume has a mode
}

// Find looks an entry up by its GUID. An entry with only the same name is another one, made before or
// after the record was written.
func (n Entry) Find(t *gpt.Table) (gpt.Partition, bool) {
	if n.Kind == ledger.TypePV { // a drive has at most one, for whichever volume it was begun
		i := slices.IndexFunc(t.Partitions, func(p gpt.Partition) bool { return p.Type == ledger.TypePV })
		if i < 0 {
			return gpt.Partition{}, false
		}
		return t.Partitions[i], true
	}
	p, ok := t.Find(n.Guid)
	return p, ok && p.Name == n.Name
}

// query asks the table of an entry's drive. It refuses a table that has the entry under another name: that is the volume's
// partition, which is neither absent nor, until a person has said so, the one that was made.
func (e *Writer) query(ctx context.Context, n Entry, ask func(*gpt.Table) (bool, error)) (bool, error) {
	return e.QueryTable(ctx, n.Drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
		if p, ok := t.Find(n.Guid); ok && n.Kind != ledger.TypePV && p.Name != n.Name {
			return false, fmt.Errorf("drive %s, partition %d: %w: it is named %q: give it back its name, `sgdisk --change-name=%d:%s`", n.Drive, p.Number, drivebay.ErrRefused, p.Name, p.Number, n.Name)
		}
		return ask(t)
	})
}

// inKernel returns the partition as the kernel has it, and whether that is what the table says.
func (e *Writer) inKernel(n Entry, t *gpt.Table) (partitions.Part, bool, error) {
	want, ok := n.Find(t)
	if !ok {
		return partitions.Part{}, false, nil
	}
	p, there := e.KernelPart(n.Drive, want.Number)
	if there && p.Start != want.Start {
		return p, false, fmt.Errorf("%w: the kernel has partition %d at %d, the table at %d", drivebay.ErrRefused, want.Number, p.Start, want.Start)
	}
	return p, there && p.Size == want.Size, nil
}

// KernelPart returns the partition of a drive with that number, as the kernel has it now.
func (e *Writer) KernelPart(drive string, number int) (partitions.Part, bool) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for _, p := range e.Partitions.Index.Parts[drive] {
		if p.Number == number {
			return p, true
		}
	}
	return partitions.Part{}, false
}

// AddEntry makes a partition: in the table, then in the kernel. It sets wrote before it writes
// anything, and writes nothing once its caller is gone. So a caller that finds wrote unset knows that
// nothing will ever be written.
func (e *Writer) AddEntry(n Entry, wrote *atomic.Bool) []steps.Step {
	return []steps.Step{{
		Name: "table " + n.Name,
		Done: e.InTable(n, func(*gpt.Table) (bool, error) { return true, nil }),
		Do: func(ctx context.Context) error {
			return e.WithTable(ctx, n.Drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				if _, there := n.Find(t); there { // added for another volume of the group
					return nil
				}
				if err := e.removeEntriesNamed(n, t); err != nil {
					return err
				}
				size := n.size
				if size == 0 {
					size = t.Largest(gpt.Align).Size
				}
				release := e.Erase.Reserve(t)
				p, err := n.addTo(t, size)
				release()
				if err != nil {
					return erase.NoRoom(err)
				}
				if wrote.Store(true); ctx.Err() != nil {
					return ctx.Err()
				}
				if len(t.Partitions) == 1 {
					if err := e.Erase.RecordStep(n.owner, inventory.FirstTable+n.Drive); err != nil {
						return err
					}
				}
				if n.Kind == ledger.TypePV { // once the table has it, another creation may make the physical volume
					if err := erase.BlankStretch(ctx, disk, p.Start, p.Size); err != nil {
						return err
					}
				}
				return t.Write(disk)
			})
		},
	}, e.AddKernelPartition(n)}
}

// AddKernelPartition tells the kernel of a partition that is in the table.
func (e *Writer) AddKernelPartition(n Entry) steps.Step {
	return steps.Step{
		Name: "kernel " + n.Name,
		Done: e.InTable(n, func(t *gpt.Table) (bool, error) {
			_, ok, err := e.inKernel(n, t)
			return ok, err
		}),
		Do: func(ctx context.Context) error {
			return e.WithTable(ctx, n.Drive, func(_ context.Context, disk host.Disk, t *gpt.Table) error {
				p, _ := n.Find(t)
				have, there := e.KernelPart(n.Drive, p.Number)
				if there && have.Start == p.Start {
					return disk.ResizePartition(p.Number, p.Start, p.Size)
				}
				return disk.AddPartition(p.Number, p.Start, p.Size)
			})
		},
	}
}

// removeEntriesNamed removes entries of the same name from a table before one is added, if they are
// of volumes that were begun and never told to the kernel, or that were forgotten. It refuses any
// other.
func (e *Writer) removeEntriesNamed(n Entry, t *gpt.Table) error {
	for _, p := range slices.Clone(t.Partitions) {
		if p.Name != n.Name || ledger.IDOfPartition(n.Name) == "" {
			continue
		}
		_, forgotten := e.Instances.ForgottenAs(drivebay.ForgottenVolume{ID: n.owner, Instance: p.GUID}.Key())
		_, inUse := e.KernelPart(n.Drive, p.Number)
		switch {
		case forgotten:
		case p.Type != ledger.TypeMaking || inUse:
			return fmt.Errorf("volume %s: %w: drive %s, partition %d", n.owner, instances.ErrElsewhere, n.Drive, p.Number)
		default:
			if err := t.Remove(p.GUID); err != nil {
				return err
			}
		}
	}
	return nil
}

// InTable returns a check of a partition that has to be in the table; it is false while it is not.
func (e *Writer) InTable(n Entry, ask func(*gpt.Table) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return e.query(ctx, n, func(t *gpt.Table) (bool, error) {
			if _, there := n.Find(t); !there {
				return false, nil
			}
			return ask(t)
		})
	}
}

// OfType reports whether a partition has a type in the table. Only one that is being made is ever
// cleared.
func (e *Writer) OfType(ctx context.Context, n Entry, kind string) (bool, error) {
	return e.InTable(n, func(t *gpt.Table) (bool, error) {
		p, _ := n.Find(t)
		return p.Type == kind, nil
	})(ctx)
}

// Retype returns the step that changes the type of a partition in the table.
func (e *Writer) Retype(name string, n Entry, kind string) steps.Step {
	return steps.Step{
		Name: name,
		Done: func(ctx context.Context) (bool, error) {
			return e.query(ctx, n, func(t *gpt.Table) (bool, error) {
				p, there := n.Find(t)
				return !there || p.Type == kind, nil
			})
		},
		Do: func(ctx context.Context) error {
			return e.WithTable(ctx, n.Drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				for i := range t.Partitions {
					if p, _ := n.Find(t); t.Partitions[i].Number == p.Number {
						t.Partitions[i].Type = kind
						n.setAttributes(&t.Partitions[i])
					}
				}
				return t.Write(disk)
			})
		},
	}
}

// DropEntry removes a partition from the kernel, then from the table, and the table after its last
// partition. The space may be used again at once.
func (e *Writer) DropEntry(n Entry) []steps.Step {
	return []steps.Step{{
		Name: "kernel without " + n.Name,
		Done: func(ctx context.Context) (bool, error) {
			return e.query(ctx, n, func(t *gpt.Table) (bool, error) {
				p, there := n.Find(t)
				if !there {
					return true, nil
				}
				_, has := e.KernelPart(n.Drive, p.Number)
				return !has, nil
			})
		},
		Do: func(ctx context.Context) error {
			return e.WithTable(ctx, n.Drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, there := n.Find(t)
				if !there || n.taken != nil && n.taken() { // or another removal was faster
					return nil
				}
				if err := holdsNoLabel(disk, n, p); err != nil {
					return err
				}
				return disk.RemovePartition(p.Number)
			})
		},
	}, {
		Name: "table without " + n.Name,
		Done: func(ctx context.Context) (bool, error) {
			return e.query(ctx, n, func(t *gpt.Table) (bool, error) {
				_, there := n.Find(t)
				return !there, nil
			})
		},
		Do: func(ctx context.Context) error {
			return e.WithTable(ctx, n.Drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, there := n.Find(t)
				if !there || n.taken != nil && n.taken() {
					return nil
				}
				if err := holdsNoLabel(disk, n, p); err != nil {
					return err
				}
				if err := t.Remove(p.GUID); err != nil {
					return err
				}
				if len(t.Partitions) == 0 { // only an empty table with this GUID is ours and can be erased; a copied drive has that of another drive
					t.GUID = partitions.TableGUID(n.Drive)
				}
				return t.Write(disk)
			})
		},
	}, e.blank(n.Drive, n.owner)}
}

// labelArea is where LVM looks for the label of a physical volume, and all that vgremove and pvremove
// zero (lib/label/label.h, LABEL_SCAN_SIZE).
const labelArea = 4 * 512

// holdsNoLabel proves, before the partition of a physical volume goes, that no label is in
// it, not even a damaged one: LVM also leaves out of its report what it could not read.
func holdsNoLabel(disk host.Disk, n Entry, p gpt.Partition) error {
	if n.Kind != ledger.TypePV {
		return nil
	}
	labelled, err := hasLabel(disk, int64(p.Start))
	switch {
	case err != nil:
		return fmt.Errorf("drive %s: partition %d: %w", n.Drive, p.Number, err)
	case labelled:
		return fmt.Errorf("drive %s: partition %d: %w: it holds the label of a physical volume, or what was one; see `pvck`, and erase it with `wipefs --all` when nothing is needed", n.Drive, p.Number, drivebay.ErrRefused)
	}
	return nil
}

// hasLabel reports whether anything is written where the label of a physical volume is.
func hasLabel(r io.ReaderAt, start int64) (bool, error) {
	area := make([]byte, labelArea)
	if _, err := r.ReadAt(area, start); err != nil {
		return false, fmt.Errorf("label of a physical volume: %w: %w", host.ErrUnreadable, err)
	}
	return slices.ContainsFunc(area, func(b byte) bool { return b != 0 && b != 0xff }), nil
}
