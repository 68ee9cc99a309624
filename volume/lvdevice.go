package volume

import (
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// lvDevice is the device of a logical volume that is active.
func (e *Engine) lvDevice(v *drivebay.Volume) (device, error) {
	e.mu.Lock()
	g := e.index.lvm.group(v.Location.VG)
	e.mu.Unlock()
	missing := func(why string) (device, error) {
		return device{}, fmt.Errorf("volume %s: logical volume %s/%s: %w: %s", v.ID, v.Location.VG, v.Location.LV, drivebay.ErrNotFound, why)
	}
	if g == nil || g.LV(v.Location.LV) == nil {
		return missing("LVM has no such volume")
	}
	lv := g.LV(v.Location.LV)
	if !lv.Active || lv.Major < 0 {
		return missing("it is not active")
	}
	num := numOf(lv)
	at := "sys/dev/block/" + num
	title, err := e.mapperName(at)
	size, err2 := readNumber(e.machine, at+"/size")
	if err = errors.Join(err, err2); err != nil {
		return missing(err.Error())
	}
	if title != lvm.MapperName(v.Location.VG, v.Location.LV) {
		return missing("device " + num + " is another now")
	}
	if !e.stands(v.Location, lv) {
		return missing("device " + num + " leads to a drive that went")
	}
	name := fmt.Sprintf("dm-%d", lv.Minor) // drivers/md/dm.c, alloc_dev
	return device{dev: "/dev/" + name, num: num, name: name, size: size * 512}, nil
}

// numOf is the device number of an active logical volume.
func numOf(lv *lvm.LV) string { return fmt.Sprintf("%d:%d", lv.Major, lv.Minor) }

// lvFacts is what LVM says of a volume; nil of a partition.
func (e *Engine) lvFacts(v *drivebay.Volume) *drivebay.LVFacts {
	if v.Location.VG == "" {
		return nil
	}
	e.mu.Lock()
	x := e.index.lvm
	e.mu.Unlock()
	g := x.group(v.Location.VG)
	if g == nil || g.LV(v.Location.LV) == nil {
		return nil
	}
	lv := g.LV(v.Location.LV)
	f := &drivebay.LVFacts{
		MissingPVs: g.Missing(), Partial: lv.Partial, Inactive: !lv.Active,
		Suspended:     lv.Suspended && x.suspended[g.Name+"/"+lv.Name],
		RefreshNeeded: lv.Health == "refresh needed", Mismatches: lv.Mismatches,
	}
	if v.Location.Mirrored() {
		f.SyncPercent = percent(lv.Sync)
	}
	if pool := g.LV(lv.Pool); pool != nil {
		f.PoolFailed, f.OutOfData, f.MetadataLocked = pool.Health == "failed", pool.Health == "out_of_data", pool.Health == "metadata_read_only"
		f.DataPercent, f.MetadataPercent = percent(pool.Data), percent(pool.Metadata)
	}
	return f
}

func percent(p lvm.Percent) *float64 {
	if !p.Known {
		return nil
	}
	return &p.Value
}
