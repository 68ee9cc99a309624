package watch

import (
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// DataRange is a range of a device that holds data of a volume.
type DataRange struct {
	mounttable.Device
	Drive      string
	start      uint64 // on the drive
	From, Size uint64 // on the device; size 0: to its end
}

// holds reports whether a place of the drive is in a range. A whole physical volume, where LVM does not
// say which part is the volume's, holds no place for sure.
func (r DataRange) holds(at uint64, grouped bool) bool {
	size := r.Size
	if size == 0 && !grouped {
		size = r.Device.Size
	}
	return r.start <= at && at-r.start < size
}

// RangesOn returns where a volume is on one of its drives. If LVM cannot report on the volume group, that
// is the whole physical volume.
func (e *Watcher) RangesOn(v *drivebay.Volume, drive string) []DataRange {
	l := v.Location
	if !l.OnLVM() {
		part, ok := e.Partitions.Partition(v)
		if !ok {
			return nil
		}
		return []DataRange{{Device: part.Device, Drive: drive, start: part.Start}}
	}
	part, ok := e.Groups.PVPart(drive)
	if !ok {
		return nil
	}
	var out []DataRange
	if x := e.Groups.LVMNow(); x != nil {
		if pv, g := x.Report.On(part.Dev); pv != nil && g != nil && g.Name == l.VG {
			for _, run := range extentsOn(g, l, pv.UUID) {
				from := pv.DataStart + run.Start*g.ExtentSize
				out = append(out, DataRange{part.Device, drive, part.Start + from, from, run.Count * g.ExtentSize})
			}
		}
	}
	if len(out) == 0 { // LVM cannot say where on it
		out = append(out, DataRange{Device: part.Device, Drive: drive, start: part.Start})
	}
	return out
}

// extentsOn returns the extents of a volume on a physical volume: its own, those of its legs, and those of
// its pool.
func extentsOn(g *lvm.Group, l drivebay.Location, pv string) []lvm.Allocation {
	var out []lvm.Allocation
	for i := range g.LVs {
		lv := &g.LVs[i]
		if lv.Name != l.LV && lv.Parent != l.LV && (l.Pool == "" || lv.Parent != l.Pool) {
			continue
		}
		for _, run := range lv.Extents {
			if run.PV == pv {
				out = append(out, run)
			}
		}
	}
	if move := g.AnyMove(); move != nil && slices.ContainsFunc(g.Moved(move), func(name string) bool { return name == l.LV || l.Pool != "" && name == l.Pool }) {
		out = append(out, g.ExtentsOn(move.Name, pv)...) // until it has moved, LVM has them with the move
	}
	return out
}
