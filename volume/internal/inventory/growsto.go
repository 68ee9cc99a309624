package inventory

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// GrowsTo returns the largest size that a volume can have where it is. Space that is kept for
// its own growth is free.
func (s PlacementView) GrowsTo(v *drivebay.Volume) (uint64, error) {
	if len(v.Location.Drives) == 0 {
		return 0, fmt.Errorf("%w: where it is, is not known", drivebay.ErrNotFound)
	}
	more := uint64(place.Most)
	s.grows = v.ID
	for _, id := range v.Location.Drives {
		parts, listed := s.Index.Parts[id]
		d, ok := steps.DriveOf(s.Drives, id)
		if !ok || !listed {
			return 0, fmt.Errorf("drive %s: %w", id, drivebay.ErrNotFound)
		}
		if err := s.doubt(d, parts); err != nil {
			return 0, err
		}
		parts = s.taken(id, parts)
		if !v.Location.OnLVM() {
			return s.partitionGrowsTo(v, d, parts), nil
		}
		if r := s.room(d, parts); r.PV == nil || r.PV.Group != v.Location.VG {
			more = 0
		} else {
			more = min(more, r.PV.Extents*lvm.ExtentSize)
		}
	}
	return v.Size + more, nil
}

// partitionGrowsTo is GrowsTo for a partition, on a drive with these partitions.
func (s PlacementView) partitionGrowsTo(v *drivebay.Volume, d *drivebay.Drive, parts []partitions.Part) uint64 {
	p, ok := partitions.Instanced(parts, ledger.PartitionName(v.ID), v.Location.Partition)
	if !ok {
		return 0
	}
	have := p.Size
	s.grows = v.ID
	for _, f := range s.room(d, parts).Free {
		if f.Start == p.Start+p.Size {
			have += f.Size()
		}
	}
	return have - min(have, place.OverheadOf(v))
}
