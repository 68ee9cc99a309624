package mounts

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// Outdated reports whether a record is older than a drive: its own volume is certainly gone and not in
// use, and a drive has another one of its id.
func (e *Mounter) Outdated(ctx context.Context, r *drivebay.VolumeRecord) (bool, error) {
	v, others := &r.Volume, e.Instances.OthersOf(r.Volume.ID, instances.LocationsOf(r)...)
	if len(v.Location.Drives) == 0 || len(others) == 0 || !e.Groups.Lacks(v, instances.Newer(v, others)) {
		return false, nil
	}
	if used, err := e.seenUsed(ctx, v, others); err != nil || used {
		return false, err
	}
	if v.Location.OnLVM() {
		return e.Instances.LogicalVolumeGone(ctx, v.Location, instances.Newer(v, others))
	}
	d, err := e.Partitions.Drive(v.Location.Drives[0])
	if err != nil {
		return false, err
	}
	table, err := e.Partitions.ReadTitles(ctx, d) // the kernel may lack what the table has
	return err == nil && !slices.ContainsFunc(table, func(p gpt.Partition) bool {
		return strings.EqualFold(p.GUID, v.Location.Partition) && !partitions.IsOldCopy(p)
	}), err
}

// seenUsed reports whether anything but another volume of the id is mounted where a record says that its
// volume is published. After a volume has gone, that may be what its device left behind.
func (e *Mounter) seenUsed(ctx context.Context, v *drivebay.Volume, others []instances.OnDrive) (bool, error) {
	if len(v.Publications) == 0 {
		return false, nil
	}
	t, err := e.MountTable.RecentTable(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range v.Publications {
		target := path.Clean(p.Path) // the roots may have changed since
		if at, err := e.CheckPath(p.Path); err == nil {
			target = at.Target
		}
		was := inventory.MadeOf(p)
		for _, m := range t.On[target] {
			if !slices.ContainsFunc(others, func(o instances.OnDrive) bool {
				return mounttable.Carries(m, o.At) && !(was.Name == o.At.Name && renumbered(m, o.At, was))
			}) {
				return true, nil
			}
		}
	}
	return false, nil
}
