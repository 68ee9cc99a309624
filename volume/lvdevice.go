package volume

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// lvDevice returns the device of an active logical volume.
func (e *Engine) lvDevice(v *drivebay.Volume) (device, error) {
	e.mu.Lock()
	g := e.index.lvm.group(v.Location.VG)
	e.mu.Unlock()
	missing := func(why string) (device, error) {
		return device{}, fmt.Errorf("volume %s: logical volume %s/%s: %w: %s", v.ID, v.Location.VG, v.Location.LV, drivebay.ErrNotFound, why)
	}
	lv := lvIn(g, v.Location)
	if lv == nil {
		if err := e.notHere(v); errors.Is(err, drivebay.ErrUnavailable) {
			return device{}, fmt.Errorf("volume %s: logical volume %s/%s: %w", v.ID, v.Location.VG, v.Location.LV, err)
		}
		return missing("LVM has no such volume")
	}
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

// numOf returns the device number of an active logical volume.
func numOf(lv *lvm.LV) string { return fmt.Sprintf("%d:%d", lv.Major, lv.Minor) }

// lvFacts returns what LVM reports of a volume; nil for a partition.
func (e *Engine) lvFacts(v *drivebay.Volume) *drivebay.LVFacts {
	if v.Location.VG == "" {
		return nil
	}
	e.mu.Lock()
	x, parts := e.index.lvm, e.index.parts
	e.mu.Unlock()
	f := &drivebay.LVFacts{}
	if !halfThere(v) {
		f.Unreadable, f.Unknown = x.unreadableOf(v.Location, parts), e.lvmLate()
		f.InUse = f.Unreadable != nil && v.Rest() != drivebay.CSICreated
	}
	g := x.group(v.Location.VG)
	lv := lvIn(g, v.Location)
	if lv == nil {
		if f.Unreadable == nil && f.Unknown == "" {
			return nil
		}
		return f
	}
	*f = drivebay.LVFacts{
		Unreadable: f.Unreadable, InUse: f.InUse, Unknown: f.Unknown,
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

// halfThere reports whether a volume is being made or removed: LVM need not know it.
func halfThere(v *drivebay.Volume) bool {
	is := v.CSIStatus
	if is == drivebay.CSIFailed {
		is = v.State().Before
	}
	return is == drivebay.CSICreating || is == drivebay.CSIRemoving || is == drivebay.CSIRemoved
}

// unreadableOf returns the drives of a location that LVM cannot read, each with the reason.
func (x *lvmIndex) unreadableOf(l drivebay.Location, parts map[string][]part) map[string]string {
	var out map[string]string
	put := func(drive, why string) {
		if out == nil {
			out = map[string]string{}
		}
		out[drive] = why
	}
	g := x.group(l.VG)
	whole := g != nil && g.LV(l.LV) != nil && len(g.Missing()) == 0
	for _, id := range l.Drives {
		list, listed := parts[id]
		_, has := pvOn(list)
		switch why := x.unreadable(id); {
		case whole && !x.withoutCopy(id):
		case listed && !has && !slices.ContainsFunc(list, nameless):
			put(id, "the drive has no partition for a physical volume any more")
		case why != "":
			put(id, why)
		case x.withoutCopy(id):
			put(id, "it cannot read the copy of the volume group's metadata there")
		}
	}
	return out
}

// unknownSince returns since when LVM has made no report, and why; "" while its report is new enough.
func (x *lvmIndex) unknownSince(now time.Time, lastError string) string {
	switch {
	case lastError == "":
		return ""
	case x == nil:
		return "no report of LVM could be made so far: " + lastError
	case now.Sub(x.at) > reportLate:
		return fmt.Sprintf("no report of LVM could be made since %s: %s", x.at.UTC().Format(time.RFC3339), lastError)
	}
	return ""
}

func percent(p lvm.Percent) *float64 {
	if !p.Known {
		return nil
	}
	return &p.Value
}
