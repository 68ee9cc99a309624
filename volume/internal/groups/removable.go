package groups

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// MayRemove refuses to remove a logical volume whose data a wipe does not reach, because another program made a snapshot of it or
// changed its type.
func MayRemove(r *lvm.Report, l drivebay.Location) error {
	g := r.Group(l.VG)
	lv := partitions.LVIn(g, l)
	if lv == nil {
		return nil
	}
	if how := otherType(l, lv); how != "" {
		return fmt.Errorf("logical volume %s/%s: %w: %s, so that a wipe does not reach all its data", g.Name, lv.Name, drivebay.ErrRefused, how)
	}
	return g.MayRemove(lv.Name)
}

// MayExtend refuses to extend a logical volume of which another program has made a snapshot.
func (e *Groups) MayExtend(l drivebay.Location) error {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Partitions.Index.LVM.Group(l.VG).MayExtend(l.LV)
}

// otherType says how another program changed the type of a logical volume, if what is written to it does not go to where its data are: a
// cache keeps it, and a thin volume writes to other places than those of its external origin (lvmcache(7), lvmthin(7)).
func otherType(l drivebay.Location, lv *lvm.LV) string {
	switch {
	case lv.Type == "cache" || lv.Type == "writecache":
		return fmt.Sprintf("it has a cache: `lvconvert --uncache %s/%s`", l.VG, lv.Name)
	case (lv.Type == "thin") != (l.Kind == drivebay.LocationThin), lv.Type == "vdo":
		return fmt.Sprintf("its type is %s now", lv.Type)
	}
	return ""
}
