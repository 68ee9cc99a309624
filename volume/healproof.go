package volume

import (
	"context"
	"fmt"
	"io"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// What a repair reads before it unmounts. The head has the superblock, the group descriptors and the root
// directory of ext4. Its journal, like the log of XFS, is near the middle, and the copies of the
// superblock are all over the device.
const (
	proofHead   = 1 << 20
	proofBlock  = 4 << 10
	proofPlaces = 16
)

// dataRange is a range of a device that holds data of a volume.
type dataRange struct {
	device
	drive      string
	start      uint64 // on the drive
	from, size uint64 // on the device; size 0: to its end
}

// holds reports whether a place of the drive is in a range. A whole physical volume, where LVM does not
// say which part is the volume's, holds no place for sure.
func (r dataRange) holds(at uint64, grouped bool) bool {
	size := r.size
	if size == 0 && !grouped {
		size = r.device.size
	}
	return r.start <= at && at-r.start < size
}

// clear unmounts the volume from a path, once a read of its disk has succeeded: a mounted filesystem still
// serves what is in memory after its disk fails, and then cannot be mounted again. All repairs unmount
// with clear.
func (p *diagnosis) clear(ctx context.Context, at mountPath) error {
	if len(p.ours(at)) > 0 && !p.proved {
		if err := p.proveReads(ctx); err != nil {
			return fmt.Errorf("nothing was unmounted, since its disk was read first: %w", err)
		}
		p.proved = true
	}
	return p.mountState.clear(ctx, at)
}

// proveReads reads from the disk of a volume, past the page cache of the kernel, what a mount needs. A
// volume that has no device yet is read on its drives; of a mirror one leg is enough.
func (p *diagnosis) proveReads(ctx context.Context) error {
	lv := p.signs.facts.LV
	if p.d.num != "" && (lv == nil || !lv.Suspended) {
		return p.readRange(ctx, dataRange{device: p.d}, p.v.Mode == drivebay.ModeFS)
	}
	failed := fmt.Errorf("%w: no drive has the volume", drivebay.ErrNotFound)
	for _, id := range p.v.Location.Drives {
		ranges := p.rangesOn(id)
		if len(ranges) == 0 {
			continue
		}
		if failed = p.readRanges(ctx, ranges); (failed == nil) == p.v.Location.Mirrored() {
			return failed
		}
	}
	return failed
}

// rangesOn returns where a volume is on one of its drives; nil if the drive is not here or its leg of a
// mirror is out of date.
func (p *diagnosis) rangesOn(drive string) []dataRange {
	m := p.v.Mirror
	if !driveHere(p.drives.Snapshot(), drive) || m != nil && m.Current != "" && m.Current != drive {
		return nil
	}
	return p.Engine.rangesOn(&p.v, drive)
}

// rangesOn returns where a volume is on one of its drives. If LVM cannot report on the volume group, that
// is the whole physical volume.
func (e *Engine) rangesOn(v *drivebay.Volume, drive string) []dataRange {
	l := v.Location
	if l.VG == "" {
		part, ok := e.partition(v)
		if !ok {
			return nil
		}
		return []dataRange{{device: part.device, drive: drive, start: part.start}}
	}
	part, ok := e.pvPart(drive)
	if !ok {
		return nil
	}
	var out []dataRange
	if x := e.lvmNow(); x != nil {
		if pv, g := x.report.On(part.dev); pv != nil && g != nil && g.Name == l.VG {
			for _, run := range extentsOn(g, l, pv.UUID) {
				from := pv.DataStart + run.Start*g.ExtentSize
				out = append(out, dataRange{part.device, drive, part.start + from, from, run.Count * g.ExtentSize})
			}
		}
	}
	if len(out) == 0 { // LVM cannot say where on it
		out = append(out, dataRange{device: part.device, drive: drive, start: part.start})
	}
	return out
}

// extentsOn returns the extents of a volume on a physical volume: its own, those of its legs, and those of
// its pool.
func extentsOn(g *lvm.Group, l drivebay.Location, pv string) []lvm.Extent {
	var out []lvm.Extent
	for i := range g.LVs {
		lv := &g.LVs[i]
		if lv.Name != l.LV && lv.Parent != l.LV && (l.Pool == "" || lv.Parent != l.Pool) {
			continue
		}
		for _, run := range lv.Extents {
			if run.PV == pv {
				out = append(out, run)
			}
		}
	}
	return out
}

func (p *diagnosis) readRanges(ctx context.Context, ranges []dataRange) error {
	for _, r := range ranges {
		if err := p.readRange(ctx, r, false); err != nil {
			return err
		}
	}
	return nil
}

// readRange reads parts of a range, in the time that a sleeping drive needs to answer.
func (p *diagnosis) readRange(ctx context.Context, r dataRange, withFS bool) error {
	return touch(ctx, p.Engine, &p.v, probeTime, func(ctx context.Context) error {
		disk, err := p.machine.OpenDisk(ctx, r.dev, false)
		if err != nil {
			return err
		}
		defer disk.Close()
		if disk.DevNum() != r.num {
			return fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, r.dev)
		}
		if r.drive != "" {
			if err := p.drives.ProveIdentity(ctx, r.drive, disk.DevNum()); err != nil {
				return err
			}
		}
		if withFS {
			if err := proveFS(medium{disk}, &p.v); err != nil {
				return err
			}
		}
		if r.size == 0 {
			r.size = disk.Size()
		}
		return readSome(ctx, medium{disk}, r.from, r.size)
	})
}

// readSome reads the head of a range, and single blocks from there to its end.
func readSome(ctx context.Context, r io.ReaderAt, from, size uint64) error {
	if _, err := r.ReadAt(make([]byte, min(proofHead, size)), int64(from)); err != nil {
		return err
	}
	if size <= proofHead {
		return nil
	}
	for i := range uint64(proofPlaces) {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := from + (size-proofBlock)/proofPlaces*(i+1)
		if _, err := r.ReadAt(make([]byte, proofBlock), int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// medium is a disk whose reads all come from the drive: a block in the page cache proves nothing.
type medium struct{ host.Disk }

// ReadAt implements io.ReaderAt by reads of whole blocks.
func (m medium) ReadAt(p []byte, off int64) (int, error) {
	block, size := int64(max(m.BlockSize(), 1)), int64(m.Size())
	from := off / block * block
	to := min((off+int64(len(p))+block-1)/block*block, size/block*block)
	if from >= to {
		return 0, io.EOF
	}
	b := make([]byte, to-from)
	if n, err := m.ReadMedium(b, from); err != nil {
		return copy(p, b[min(off-from, int64(n)):n]), err
	}
	n := copy(p, b[off-from:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
