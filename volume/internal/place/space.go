package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// Overhead returns what an encrypted volume takes beyond its size. The argument is the UUID of its header
// or the encryption of its class; "" is not encrypted.
func Overhead(encrypted string) uint64 {
	if encrypted == "" {
		return 0
	}
	return partitions.LUKSHeader
}

// OverheadOf returns what the piece of a volume has beyond the volume's size.
func OverheadOf(v *drivebay.Volume) uint64 {
	n := Overhead(v.LUKSUUID)
	if v.Replication != nil {
		n += v.Replication.Room
	}
	return n
}

// FreeSpans returns the ranges of a drive without a partition. The first MiB stays free
// of partitions, and the end has the GPT's backup: a header and 128 entries of 128 bytes
// (UEFI 2.10, 5.3.1).
func FreeSpans(size uint64, block int, taken []Span) []Span {
	bs := uint64(max(block, 512))
	backup := bs + max(128*128, bs)
	if size < 2*partitions.MiB+backup {
		return nil
	}
	slices.SortFunc(taken, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	var out []Span
	at, end, after := uint64(partitions.MiB), (size/bs*bs-backup)/partitions.MiB*partitions.MiB, uint64(0)
	for _, t := range append(slices.Clone(taken), Span{Start: end, End: end}) {
		if to := t.Start / partitions.MiB * partitions.MiB; to > at {
			out = append(out, Span{at, min(to, end), after})
		}
		at, after = max(at, (t.End+partitions.MiB-1)/partitions.MiB*partitions.MiB), t.Size()
	}
	return slices.DeleteFunc(out, func(s Span) bool { return s.Start >= s.End })
}

// Take removes the space of a new partition from free ranges. The table chooses the
// partition's place by the same rules (gpt.Table.Add).
func Take(free []Span, size uint64) (left []Span, ok bool) {
	ranges := make([]gpt.Range, len(free))
	for i, s := range free {
		ranges[i] = gpt.Range{Start: s.Start, Size: s.Size(), After: s.After}
	}
	in := gpt.Choose(ranges, size)
	if in.Size == 0 || size == 0 {
		return free, false
	}
	at := in.Place(size, partitions.MiB)
	for _, s := range free {
		parts := []Span{s}
		if s.Start == in.Start {
			parts = []Span{{s.Start, at, s.After}, {at + size, s.End, size}}
		}
		for _, p := range parts {
			if p.Size() > 0 {
				left = append(left, p)
			}
		}
	}
	return left, true
}

// Largest returns the largest of some spans.
func Largest(free []Span) Span {
	var out Span
	for _, s := range free {
		if s.Size() > out.Size() {
			out = s
		}
	}
	return out
}

// ForParts returns the largest ranges, by start, in which so many new partitions can be made: each needs an entry of the
// partition table, and none can be made in the ranges beyond that number.
func ForParts(free []Span, parts int) []Span {
	if len(free) <= parts {
		return free
	}
	out := slices.SortedStableFunc(slices.Values(free), func(a, b Span) int { return cmp.Compare(b.Size(), a.Size()) })[:max(parts, 0)]
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// LargestOut removes the largest span and returns it.
func LargestOut(free []Span) ([]Span, Span) {
	l := Largest(free)
	return slices.DeleteFunc(slices.Clone(free), func(s Span) bool { return s == l }), l
}

// dataStart is where the data of our physical volumes begins: a label, 16 MiB
// of metadata, and up to the next whole MiB (package lvm; seen as pe_start).
const dataStart = 17 * partitions.MiB

// PVExtents returns how many extents a partition has for volumes.
func PVExtents(size uint64) uint64 {
	if size < dataStart {
		return 0
	}
	return (size - dataStart) / lvm.ExtentSize
}

// ExtentsOf returns how many LVM extents hold a size.
func ExtentsOf(size uint64) uint64 { return (size + lvm.ExtentSize - 1) / lvm.ExtentSize }

// PoolName is the name of the one thin pool of a group.
const PoolName = "drivebay-pool"

// PoolMetadata returns how many extents a pool's metadata gets. LVM allocates them
// twice: once for use and once for repair (lvmthin(7), "Spare metadata LV"). A chunk
// takes 64 bytes (thin_metadata_size): chunks of 256 KiB fit up to 4 TiB, LVM makes
// them larger beyond.
func PoolMetadata(extents uint64) uint64 {
	return min(max(ExtentsOf(extents*lvm.ExtentSize/4096), 4), partitions.GiB/lvm.ExtentSize)
}

// PoolExtents returns how many extents volumes get of a pool that fills a group.
func PoolExtents(extents uint64) uint64 {
	over := 2 * PoolMetadata(extents)
	return extents - min(extents, over)
}

// Unpromised returns how many extents of a thin pool no volume or snapshot can ever fill.
func Unpromised(g *lvm.Group, pool *lvm.LV) uint64 {
	left := pool.Size
	for _, lv := range g.LVs {
		if lv.Pool == pool.Name {
			left -= min(left, lv.Size)
		}
	}
	return left / lvm.ExtentSize
}

// FitsPool refuses a size of a thin volume, or of a snapshot of one, with which those of its pool could fill more than the pool has. LVM
// does not refuse it, and the pool may have other volumes since the work was recorded.
func FitsPool(r *lvm.Report, l drivebay.Location, size uint64) error {
	if l.Kind != drivebay.LocationThin {
		return nil
	}
	g := r.Group(l.VG)
	if g == nil || g.LV(l.Pool) == nil {
		return fmt.Errorf("thin pool %s/%s: %w: it is not listed", l.VG, l.Pool, drivebay.ErrNotFound)
	}
	have, left := uint64(0), Unpromised(g, g.LV(l.Pool))*lvm.ExtentSize
	if lv := g.LV(l.LV); lv != nil {
		have = lv.Size
	}
	if size > have && size-have > left {
		return fmt.Errorf("thin pool %s/%s: %w: %s would get %s, and %s are left", g.Name, l.Pool, drivebay.ErrNoSpace, l.LV, partitions.SizeText(size-have), partitions.SizeText(left))
	}
	return nil
}

// Unit returns the number of bytes that a volume's size is a multiple of.
func Unit(b drivebay.Backing) uint64 {
	switch b {
	case drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror:
		return lvm.ExtentSize
	}
	return partitions.MiB
}

// Smallest returns the least size of a volume of a class: a filesystem needs
// room for itself (mkfs.xfs 6.1 refuses less than 300 MiB), and must be able to grow
// (fs/btrfs/ioctl.c, btrfs_ioctl_resize: not to less than 256 MiB).
func Smallest(c drivebay.Class, block bool) uint64 {
	if block {
		return Unit(c.Backing)
	}
	return map[string]uint64{"ext4": 16 * partitions.MiB, "xfs": 300 * partitions.MiB, "btrfs": 256 * partitions.MiB}[c.FSType]
}

// extents returns the size of the largest volume of a kind for which this drive alone has room.
func (r *DriveSpace) extents(kind drivebay.LocationKind) uint64 {
	n := uint64(0)
	switch {
	case r.PV == nil || r.PV.Group == "" || r.PV.Kind == drivebay.LocationUnknown:
		if n = PVExtents(Largest(r.Free).Size()); r.PV != nil {
			n = r.PV.Extents
		}
		if kind == drivebay.LocationThin {
			n = PoolExtents(n)
		}
	case r.PV.Kind == kind:
		n = r.PV.Extents
	}
	if kind == drivebay.LocationMirror && n > 0 {
		n-- // each leg keeps an extent for itself (lvmraid(7), rmeta)
	}
	return n
}
