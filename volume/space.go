package volume

import (
	"cmp"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// freeSpans returns the ranges of a drive without a partition. The first MiB stays free
// of partitions, and the end has the GPT's backup: a header and 128 entries of 128 bytes
// (UEFI 2.10, 5.3.1).
func freeSpans(size uint64, block int, taken []span) []span {
	bs := uint64(max(block, 512))
	backup := bs + max(128*128, bs)
	if size < 2*mib+backup {
		return nil
	}
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var out []span
	at, end, after := uint64(mib), (size/bs*bs-backup)/mib*mib, uint64(0)
	for _, t := range append(slices.Clone(taken), span{start: end, end: end}) {
		if to := t.start / mib * mib; to > at {
			out = append(out, span{at, min(to, end), after})
		}
		at, after = max(at, (t.end+mib-1)/mib*mib), t.size()
	}
	return slices.DeleteFunc(out, func(s span) bool { return s.start >= s.end })
}

// take removes the space of a new partition from free ranges. The table chooses the
// partition's place by the same rules (gpt.Table.Add).
func take(free []span, size uint64) (left []span, ok bool) {
	ranges := make([]gpt.Range, len(free))
	for i, s := range free {
		ranges[i] = gpt.Range{Start: s.start, Size: s.size(), After: s.after}
	}
	in := gpt.Choose(ranges, size)
	if in.Size == 0 || size == 0 {
		return free, false
	}
	at := in.Place(size, mib)
	for _, s := range free {
		parts := []span{s}
		if s.start == in.Start {
			parts = []span{{s.start, at, s.after}, {at + size, s.end, size}}
		}
		for _, p := range parts {
			if p.size() > 0 {
				left = append(left, p)
			}
		}
	}
	return left, true
}

func largest(free []span) span {
	var out span
	for _, s := range free {
		if s.size() > out.size() {
			out = s
		}
	}
	return out
}

// largestOut removes the largest span and returns it.
func largestOut(free []span) ([]span, span) {
	l := largest(free)
	return slices.DeleteFunc(slices.Clone(free), func(s span) bool { return s == l }), l
}

// dataStart is where the data of our physical volumes begins: a label, 16 MiB
// of metadata, and up to the next whole MiB (package lvm; seen as pe_start).
const dataStart = 17 * mib

// pvExtents returns how many extents a partition has for volumes.
func pvExtents(size uint64) uint64 {
	if size < dataStart {
		return 0
	}
	return (size - dataStart) / lvm.ExtentSize
}

func extentsOf(size uint64) uint64 { return (size + lvm.ExtentSize - 1) / lvm.ExtentSize }

// poolName is the name of the one thin pool of a group.
const poolName = "drivebay-pool"

// poolMetadata returns how many extents a pool's metadata gets. LVM allocates them
// twice: once for use and once for repair (lvmthin(7), "Spare metadata LV"). A chunk
// takes 64 bytes (thin_metadata_size): chunks of 256 KiB fit up to 4 TiB, LVM makes
// them larger beyond.
func poolMetadata(extents uint64) uint64 {
	return min(max(extentsOf(extents*lvm.ExtentSize/4096), 4), gib/lvm.ExtentSize)
}

// poolExtents returns how many extents volumes get of a pool that fills a group.
func poolExtents(extents uint64) uint64 {
	over := 2 * poolMetadata(extents)
	return extents - min(extents, over)
}

// unit returns the number of bytes that a volume's size is a multiple of.
func unit(b drivebay.Backing) uint64 {
	switch b {
	case drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror:
		return lvm.ExtentSize
	}
	return mib
}

// smallest returns the least size of a volume of a class: a filesystem needs
// room for itself (mkfs.xfs 6.1 refuses less than 300 MiB), and must be able to grow
// (fs/btrfs/ioctl.c, btrfs_ioctl_resize: not to less than 256 MiB).
func smallest(c drivebay.Class, block bool) uint64 {
	if block {
		return unit(c.Backing)
	}
	return map[string]uint64{"ext4": 16 * mib, "xfs": 300 * mib, "btrfs": 256 * mib}[c.FSType]
}

// extents returns the size of the largest volume of a kind for which this drive alone has room.
func (r *room) extents(kind drivebay.LocationKind) uint64 {
	n := uint64(0)
	switch {
	case r.pv == nil || r.pv.group == "" || r.pv.kind == drivebay.LocationUnknown:
		if n = pvExtents(largest(r.free).size()); r.pv != nil {
			n = r.pv.extents
		}
		if kind == drivebay.LocationThin {
			n = poolExtents(n)
		}
	case r.pv.kind == kind:
		n = r.pv.extents
	}
	if kind == drivebay.LocationMirror && n > 0 {
		n-- // each leg keeps an extent for itself (lvmraid(7), rmeta)
	}
	return n
}
