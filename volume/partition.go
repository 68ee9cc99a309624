package volume

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// entry is a partition that is to be in the table of a drive.
type entry struct {
	drive, guid, name, kind string
	size                    uint64      // 0: the largest free range
	owner                   string      // id of the volume that it is made for
	taken                   func() bool // reports whether another volume needs it now; nil: none can
	attributes              uint16      // of the entry, see attributesOf; 0: unchanged
}

// addTo adds the entry to a table in memory.
func (n entry) addTo(t *gpt.Table, size uint64) (gpt.Partition, error) {
	p, err := t.Add(size, gpt.Align, n.kind, n.guid, n.name)
	for i := range t.Partitions {
		if err == nil && t.Partitions[i].Number == p.Number {
			n.setAttributes(&t.Partitions[i])
		}
	}
	return p, err
}

func (n entry) setAttributes(p *gpt.Partition) {
	if n.attributes != 0 {
		p.TypeAttributes = n.attributes
	}
}

func ofVolume(r *drivebay.VolumeRecord) entry {
	v := &r.Volume
	return entry{drive: v.Location.Drives[0], guid: v.Location.Partition, name: partitionName(v.ID), kind: typeMaking, size: v.Size + overhead(v.LUKSUUID), owner: v.ID, attributes: attributesOf(v)}
}

func entryOfPV(owner, drive, uuid string) entry {
	return entry{drive: drive, guid: pvGUID(uuid), name: pvName(uuid), kind: typePV, owner: owner}
}

// finalType returns the type of a volume's partition once the volume is finished.
func finalType(v *drivebay.Volume) string {
	for kind, is := range types {
		if is.mode == v.Mode && is.encrypted == (v.LUKSUUID != "") {
			return kind
		}
	}
	return typeMaking // every finished volume has a mode
}

// find looks an entry up by its GUID. An entry with only the same name is another one, made before or
// after the record was written.
func (n entry) find(t *gpt.Table) (gpt.Partition, bool) {
	if n.kind == typePV { // a drive has at most one, for whichever volume it was begun
		i := slices.IndexFunc(t.Partitions, func(p gpt.Partition) bool { return p.Type == typePV })
		if i < 0 {
			return gpt.Partition{}, false
		}
		return t.Partitions[i], true
	}
	p, ok := t.Find(n.guid)
	return p, ok && p.Name == n.name
}

// inKernel returns the partition as the kernel has it, and whether that is what the table says.
func (e *Engine) inKernel(n entry, t *gpt.Table) (part, bool, error) {
	want, ok := n.find(t)
	if !ok {
		return part{}, false, nil
	}
	p, there := e.kernelPart(n.drive, want.Number)
	if there && p.start != want.Start {
		return p, false, fmt.Errorf("%w: the kernel has partition %d at %d, the table at %d", drivebay.ErrRefused, want.Number, p.start, want.Start)
	}
	return p, there && p.size == want.Size, nil
}

func (e *Engine) kernelPart(drive string, number int) (part, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.index.parts[drive] {
		if p.number == number {
			return p, true
		}
	}
	return part{}, false
}

// addEntry makes a partition: in the table, then in the kernel. It sets wrote before it writes
// anything, and writes nothing once its caller is gone. So a caller that finds wrote unset knows that
// nothing will ever be written.
func (e *Engine) addEntry(n entry, wrote *atomic.Bool) []step {
	return []step{{
		name: "table " + n.name,
		done: e.inTable(n, func(*gpt.Table) (bool, error) { return true, nil }),
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				if _, there := n.find(t); there { // added for another volume of the group
					return nil
				}
				if err := e.removeEntriesNamed(n, t); err != nil {
					return err
				}
				size := n.size
				if size == 0 {
					size = t.Largest(gpt.Align).Size
				}
				release := e.reserve(t)
				p, err := n.addTo(t, size)
				release()
				if err != nil {
					return noRoom(err)
				}
				if wrote.Store(true); ctx.Err() != nil {
					return ctx.Err()
				}
				if len(t.Partitions) == 1 {
					if err := e.recordStep(n.owner, firstTable+n.drive); err != nil {
						return err
					}
				}
				if n.kind == typePV { // once the table has it, another creation may make the physical volume
					if err := clearStretch(ctx, disk, p.Start, p.Size); err != nil {
						return err
					}
				}
				return t.Write(disk)
			})
		},
	}, e.addKernelPartition(n)}
}

// addKernelPartition tells the kernel of a partition that is in the table.
func (e *Engine) addKernelPartition(n entry) step {
	return step{
		name: "kernel " + n.name,
		done: e.inTable(n, func(t *gpt.Table) (bool, error) {
			_, ok, err := e.inKernel(n, t)
			return ok, err
		}),
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(_ context.Context, disk host.Disk, t *gpt.Table) error {
				p, _ := n.find(t)
				have, there := e.kernelPart(n.drive, p.Number)
				if there && have.start == p.Start {
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
func (e *Engine) removeEntriesNamed(n entry, t *gpt.Table) error {
	for _, p := range slices.Clone(t.Partitions) {
		if p.Name != n.name || idOfPartition(n.name) == "" {
			continue
		}
		_, forgotten := e.forgottenAs(drivebay.ForgottenVolume{ID: n.owner, Instance: p.GUID}.Key())
		_, inUse := e.kernelPart(n.drive, p.Number)
		switch {
		case forgotten:
		case p.Type != typeMaking || inUse:
			return fmt.Errorf("volume %s: %w: drive %s, partition %d", n.owner, errElsewhere, n.drive, p.Number)
		default:
			if err := t.Remove(p.GUID); err != nil {
				return err
			}
		}
	}
	return nil
}

// inTable returns a check of a partition that has to be in the table; it is false while it is not.
func (e *Engine) inTable(n entry, ask func(*gpt.Table) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return e.queryTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
			if _, there := n.find(t); !there {
				return false, nil
			}
			return ask(t)
		})
	}
}

// ofType reports whether a partition has a type in the table. Only one that is being made is ever
// cleared.
func (e *Engine) ofType(ctx context.Context, n entry, kind string) (bool, error) {
	return e.inTable(n, func(t *gpt.Table) (bool, error) {
		p, _ := n.find(t)
		return p.Type == kind, nil
	})(ctx)
}

// retype returns the step that changes the type of a partition in the table.
func (e *Engine) retype(name string, n entry, kind string) step {
	return step{
		name: name,
		done: func(ctx context.Context) (bool, error) {
			return e.queryTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				p, there := n.find(t)
				return !there || p.Type == kind, nil
			})
		},
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				for i := range t.Partitions {
					if p, _ := n.find(t); t.Partitions[i].Number == p.Number {
						t.Partitions[i].Type = kind
						n.setAttributes(&t.Partitions[i])
					}
				}
				return t.Write(disk)
			})
		},
	}
}

// dropEntry removes a partition from the kernel, then from the table, and the table after its last
// partition. The space may be used again at once.
func (e *Engine) dropEntry(n entry) []step {
	return []step{{
		name: "kernel without " + n.name,
		done: func(ctx context.Context) (bool, error) {
			return e.queryTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				p, there := n.find(t)
				if !there {
					return true, nil
				}
				_, has := e.kernelPart(n.drive, p.Number)
				return !has, nil
			})
		},
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, there := n.find(t)
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
		name: "table without " + n.name,
		done: func(ctx context.Context) (bool, error) {
			return e.queryTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				_, there := n.find(t)
				return !there, nil
			})
		},
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, there := n.find(t)
				if !there || n.taken != nil && n.taken() {
					return nil
				}
				if err := holdsNoLabel(disk, n, p); err != nil {
					return err
				}
				if err := t.Remove(p.GUID); err != nil {
					return err
				}
				return t.Write(disk)
			})
		},
	}, e.blank(n.drive, n.owner)}
}

// labelArea is where LVM looks for the label of a physical volume, and all that vgremove and pvremove
// zero (lib/label/label.h, LABEL_SCAN_SIZE).
const labelArea = 4 * 512

// holdsNoLabel proves, before the partition of a physical volume goes, that no label is in
// it, not even a damaged one: LVM also leaves out of its report what it could not read.
func holdsNoLabel(disk host.Disk, n entry, p gpt.Partition) error {
	if n.kind != typePV {
		return nil
	}
	labelled, err := hasLabel(disk, int64(p.Start))
	switch {
	case err != nil:
		return fmt.Errorf("drive %s: partition %d: %w", n.drive, p.Number, err)
	case labelled:
		return fmt.Errorf("drive %s: partition %d: %w: it holds the label of a physical volume, or what was one; see `pvck`, and erase it with `wipefs --all` when nothing is needed", n.drive, p.Number, drivebay.ErrRefused)
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
