package inventory

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

// sites returns the places where a volume of a class can be made, best first.
func (s PlacementView) sites(c drivebay.Class) []place.Site {
	return place.SitesIn(s.Rooms(c), c)
}

// Choose returns the best place for a volume; the places in without have been tried, see place.KeyOf. Each drive of a mirror that was tried can
// be the one that is unfit: the other one is paired with a third drive.
func (s PlacementView) Choose(c drivebay.Class, size uint64, without map[string]bool) (place.Site, error) {
	rooms := s.Rooms(c)
	at, err := s.choose(place.SitesIn(rooms, c), c, size, without)
	for i := 0; i < len(rooms) && err != nil && c.Backing == drivebay.BackingMirror && len(without) > 0; i++ {
		if other, none := s.choose(place.SitesIn(slices.Delete(slices.Clone(rooms), i, i+1), c), c, size, without); none == nil {
			return other, nil
		}
	}
	return at, err
}

func (s PlacementView) choose(sites []place.Site, c drivebay.Class, size uint64, without map[string]bool) (place.Site, error) {
	most := uint64(0)
	for _, at := range sites {
		if without[at.Key()] {
			continue
		}
		if at.Most >= size {
			return at, nil
		}
		most = max(most, at.Most)
	}
	if limit := s.limit(c); limit > 0 && size > limit {
		return place.Site{}, fmt.Errorf("%w: requested %s, but an empty drive of this class holds at most %s", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(limit))
	}
	return place.Site{}, fmt.Errorf("%w: requested %s, but the largest volume of this class can have %s", drivebay.ErrNoSpace, partitions.SizeText(size), partitions.SizeText(most))
}

// limit returns the largest volume of a class that its drives could hold if all of them were empty
// and GOOD; 0: there is no such drive.
func (s PlacementView) limit(c drivebay.Class) uint64 {
	var rooms []place.DriveSpace
	for i := range s.Drives.Drives {
		d := &s.Drives.Drives[i]
		if d.Claim != nil && (c.Drives == drivebay.TypeUnknown || c.Drives == d.Type) {
			rooms = append(rooms, place.DriveSpace{Drive: d, Free: place.FreeSpans(d.Size, d.LogicalBlock, nil)})
		}
	}
	out := uint64(0)
	for _, at := range place.SitesIn(rooms, c) {
		out = max(out, at.Most)
	}
	return out
}

// Capacity returns the space for new volumes of a class.
func (s PlacementView) Capacity(c drivebay.Class) drivebay.Capacity {
	out := drivebay.Capacity{Smallest: place.Smallest(c, c.FSType == "")}
	for _, at := range s.sites(c) {
		out.Largest = max(out.Largest, at.Most)
		out.Available += at.Available(c)
	}
	if out.Largest < out.Smallest {
		out.Available, out.Largest = 0, 0
	}
	return out
}
