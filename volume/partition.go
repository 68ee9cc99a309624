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
	taken                   func() bool // whether somebody else counts on it by now; nil: nobody can
}

func ofVolume(r *drivebay.VolumeRecord) entry {
	v := &r.Volume
	return entry{drive: v.Location.Drives[0], guid: v.Location.Partition, name: partitionName(v.ID), kind: typeMaking, size: v.Size + overhead(v.LUKSUUID), owner: v.ID}
}

func entryOfPV(owner, drive, uuid string) entry {
	return entry{drive: drive, guid: pvGUID(uuid), name: pvName(uuid), kind: typePV, owner: owner}
}

// finalType says what the partition of a volume is, once it is one.
func finalType(v *drivebay.Volume) string {
	for kind, is := range types {
		if is.mode == v.Mode && is.encrypted == (v.LUKSUUID != "") {
			return kind
		}
	}
	return typeMaking // no volume that was made has no mode
}

// find looks an entry up by its GUID: what only has the name is another one, made
// after the record was written or before.
func (n entry) find(t *gpt.Table) (gpt.Partition, bool) {
	if n.kind == typePV { // a drive has one at most, whoever began it
		i := slices.IndexFunc(t.Partitions, func(p gpt.Partition) bool { return p.Type == typePV })
		if i < 0 {
			return gpt.Partition{}, false
		}
		return t.Partitions[i], true
	}
	p, ok := t.Find(n.guid)
	return p, ok && p.Name == n.name
}

// inKernel is the partition as the kernel has it, if that is what the table says.
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

// addEntry makes a partition: in the table, then in the kernel. Wrote is set before
// anything is written, and nothing is written for a caller that has gone: so a caller that
// finds it unset may take it that nothing ever will be.
func (e *Engine) addEntry(n entry, wrote *atomic.Bool) []step {
	return []step{{
		name: "table " + n.name,
		done: e.inTable(n, func(*gpt.Table) (bool, error) { return true, nil }),
		do: func(ctx context.Context) error {
			return e.onTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				if _, there := n.find(t); there { // another volume of the same group was faster
					return nil
				}
				if err := e.clearName(n, t); err != nil {
					return err
				}
				size := n.size
				if size == 0 {
					size = t.Largest(gpt.Align).Size
				}
				release := e.reserve(t)
				p, err := t.Add(size, gpt.Align, n.kind, n.guid, n.name)
				release()
				if err != nil {
					return noRoom(err)
				}
				if wrote.Store(true); ctx.Err() != nil {
					return ctx.Err()
				}
				if len(t.Partitions) == 1 {
					if err := e.announce(n.owner, firstTable+n.drive); err != nil {
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
	}, e.shown(n)}
}

// shown tells the kernel of a partition that is in the table.
func (e *Engine) shown(n entry) step {
	return step{
		name: "kernel " + n.name,
		done: e.inTable(n, func(t *gpt.Table) (bool, error) {
			_, ok, err := e.inKernel(n, t)
			return ok, err
		}),
		do: func(ctx context.Context) error {
			return e.onTable(ctx, n.drive, func(_ context.Context, disk host.Disk, t *gpt.Table) error {
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

// clearName takes entries of the same name out of a table before one is added: those
// of volumes that were begun and never told to the kernel. Any other is refused, unless
// it was forgotten.
func (e *Engine) clearName(n entry, t *gpt.Table) error {
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

// inTable asks a question about a partition that has to be in the table; the
// answer is no while it is not.
func (e *Engine) inTable(n entry, ask func(*gpt.Table) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return e.askTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
			if _, there := n.find(t); !there {
				return false, nil
			}
			return ask(t)
		})
	}
}

// ofType says whether the table has a partition as one of a type. Only one that is
// being made is ever cleared.
func (e *Engine) ofType(ctx context.Context, n entry, kind string) (bool, error) {
	return e.inTable(n, func(t *gpt.Table) (bool, error) {
		p, _ := n.find(t)
		return p.Type == kind, nil
	})(ctx)
}

// retype makes the table say of a partition what it is from now on.
func (e *Engine) retype(name string, n entry, kind string) step {
	return step{
		name: name,
		done: func(ctx context.Context) (bool, error) {
			return e.askTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				p, there := n.find(t)
				return !there || p.Type == kind, nil
			})
		},
		do: func(ctx context.Context) error {
			return e.onTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				for i := range t.Partitions {
					if p, _ := n.find(t); t.Partitions[i].Number == p.Number {
						t.Partitions[i].Type = kind
					}
				}
				return t.Write(disk)
			})
		},
	}
}

// dropEntry takes a partition away: from the kernel, then out of the table, and
// the table when it was the last. Where it was, somebody else may be at once.
func (e *Engine) dropEntry(n entry) []step {
	return []step{{
		name: "kernel without " + n.name,
		done: func(ctx context.Context) (bool, error) {
			return e.askTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				p, there := n.find(t)
				if !there {
					return true, nil
				}
				_, has := e.kernelPart(n.drive, p.Number)
				return !has, nil
			})
		},
		do: func(ctx context.Context) error {
			return e.onTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, there := n.find(t)
				if !there || n.taken != nil && n.taken() { // or somebody else, who had to, was faster
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
			return e.askTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				_, there := n.find(t)
				return !there, nil
			})
		},
		do: func(ctx context.Context) error {
			return e.onTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
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

// labelArea is where LVM looks for the label of a physical volume, and all that vgremove
// and pvremove zero (lib/label/label.h, LABEL_SCAN_SIZE).
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

// hasLabel says whether something is written where the label of a physical volume is.
func hasLabel(r io.ReaderAt, start int64) (bool, error) {
	area := make([]byte, labelArea)
	if _, err := r.ReadAt(area, start); err != nil {
		return false, fmt.Errorf("label of a physical volume: %w: %w", host.ErrUnreadable, err)
	}
	return slices.ContainsFunc(area, func(b byte) bool { return b != 0 && b != 0xff }), nil
}
