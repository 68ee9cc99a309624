package repair

import (
	"context"
	"fmt"
	"io"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/watch"
)

// What a repair reads before it unmounts. The head has the superblock, the group descriptors and the root
// directory of ext4. Its journal, like the log of XFS, is near the middle, and the copies of the
// superblock are all over the device.
const (
	proofHead   = 1 << 20
	proofBlock  = 4 << 10
	proofPlaces = 16
)

// clear unmounts the volume from a path, once a read of its disk has succeeded: a mounted filesystem still
// serves what is in memory after its disk fails, and then cannot be mounted again. All repairs unmount
// with clear.
func (p *diagnosis) clear(ctx context.Context, at mounts.MountPath) error {
	if len(p.Ours(at)) > 0 && !p.proved {
		if err := p.proveReads(ctx); err != nil {
			return fmt.Errorf("nothing was unmounted, since its disk was read first: %w", err)
		}
		p.proved = true
	}
	return p.MountState.Clear(ctx, at)
}

// proveReads reads from the disk of a volume, past the page cache of the kernel, what a mount needs. A
// volume that has no device yet is read on its drives; of a mirror one leg is enough.
func (p *diagnosis) proveReads(ctx context.Context) error {
	lv := p.signs.facts.LV
	if p.D.Num != "" && (lv == nil || !lv.Suspended) {
		return p.readRange(ctx, watch.DataRange{Device: p.D}, p.V.HasFilesystem())
	}
	failed := fmt.Errorf("%w: no drive has the volume", drivebay.ErrNotFound)
	for _, id := range p.V.Location.Drives {
		ranges := p.rangesOn(id)
		if len(ranges) == 0 {
			continue
		}
		if failed = p.readRanges(ctx, ranges); (failed == nil) == p.V.Location.Mirrored() {
			return failed
		}
	}
	return failed
}

// rangesOn returns where a volume is on one of its drives; nil if the drive is not here or its leg of a
// mirror is out of date.
func (p *diagnosis) rangesOn(drive string) []watch.DataRange {
	m := p.V.Mirror
	if !mirror.DriveHere(p.Drives.Snapshot(), drive) || m != nil && m.Current != "" && m.Current != drive {
		return nil
	}
	return p.e.Watch.RangesOn(&p.V, drive)
}

func (p *diagnosis) readRanges(ctx context.Context, ranges []watch.DataRange) error {
	for _, r := range ranges {
		if err := p.readRange(ctx, r, false); err != nil {
			return err
		}
	}
	return nil
}

// readRange reads parts of a range, in the time that a sleeping drive needs to answer.
func (p *diagnosis) readRange(ctx context.Context, r watch.DataRange, withFS bool) error {
	return steps.Touch(ctx, p.e.Steps, &p.V, steps.ProbeTime, func(ctx context.Context) error {
		disk, err := p.e.Device.OpenProved(ctx, device.WriteTarget{Device: r.Device, On: r.Drive})
		if err != nil {
			return err
		}
		defer disk.Close()
		if withFS {
			if err := mounts.ProveFS(medium{disk}, &p.V); err != nil {
				return err
			}
		}
		if r.Size == 0 {
			r.Size = disk.Size()
		}
		return readSome(ctx, medium{disk}, r.From, r.Size)
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
