package groups

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// NumOf returns the device number of an active logical volume.
func NumOf(lv *lvm.LV) string { return fmt.Sprintf("%d:%d", lv.Major, lv.Minor) }

// LVFacts returns what LVM reports of a volume; nil for a partition.
func (e *Groups) LVFacts(v *drivebay.Volume) *drivebay.LVFacts {
	if !v.Location.OnLVM() {
		return nil
	}
	e.Ledger.Mu.Lock()
	x, parts := e.Partitions.Index.LVM, e.Partitions.Index.Parts
	e.Ledger.Mu.Unlock()
	f := &drivebay.LVFacts{}
	if !halfThere(v) {
		f.Unreadable, f.Unknown = x.UnreadableOf(v.Location, parts), e.LVMLate()
		f.InUse = f.Unreadable != nil && v.Rest() != drivebay.CSICreated
	}
	g := x.Group(v.Location.VG)
	lv := partitions.LVIn(g, v.Location)
	if lv == nil {
		if f.Unreadable == nil && f.Unknown == "" {
			return nil
		}
		return f
	}
	*f = drivebay.LVFacts{
		Unreadable: f.Unreadable, InUse: f.InUse, Unknown: f.Unknown,
		MissingPVs: g.Missing(), Partial: lv.Partial, Inactive: !lv.Active,
		Suspended:     lv.Suspended && x.Suspended[g.Name+"/"+lv.Name],
		RefreshNeeded: lv.Health == "refresh needed", Mismatches: lv.Mismatches,
	}
	if v.Location.Mirrored() {
		f.SyncPercent = percent(lv.Sync)
		if lv.Type == "linear" { // one leg is left, and LVM reports no progress of a linear volume
			f.SyncPercent = new(float64)
		}
	}
	path := g.Name + "/" + lv.Name
	f.Changed = otherType(v.Location, lv)
	if f.Changed == "" && lv.ReadOnly {
		f.Changed = fmt.Sprintf("it is read-only: `lvchange --permission rw %s`", path)
	}
	if pool := g.LV(lv.Pool); pool != nil {
		if f.Changed == "" && v.RawBlocks() && !pool.ZeroesBlocks() {
			f.Changed = fmt.Sprintf("its thin pool does not zero new blocks, which show what was in them: `lvchange --zero y %s/%s`", g.Name, pool.Name)
		}
		f.PoolFailed, f.OutOfData, f.MetadataLocked = pool.Health == "failed", pool.Health == "out_of_data", pool.Health == "metadata_read_only"
		f.DataPercent, f.MetadataPercent = percent(pool.Data), percent(pool.Metadata)
	}
	return f
}

// halfThere reports whether a volume is being made or removed: LVM need not know it.
func halfThere(v *drivebay.Volume) bool {
	is := v.CSIStatus
	if is == drivebay.CSIFailed {
		is = v.State().Before
	}
	return is == drivebay.CSICreating || is == drivebay.CSIRemoving || is == drivebay.CSIRemoved
}

func percent(p lvm.Percent) *float64 {
	if !p.Known {
		return nil
	}
	return &p.Value
}
