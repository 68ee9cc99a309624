package volume

import (
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// A device that LVM made outlives the drive below it. When that drive is back the
// device still leads to the one that went, every read of it fails, and LVM reports
// it as active: only sysfs knows better (seen with Linux 6.1 and lvm2 2.03.16; a
// kernel name is given to no other drive while something is above it).

// appearing plans the device of a volume. One that stands on nothing is let go of
// first, and so is what else keeps a thin pool that does.
func (e *Engine) appearing(v *drivebay.Volume) []lvm.Step {
	l := v.Location
	var plan []lvm.Step
	for _, name := range e.tied(l) {
		for _, s := range lvm.Deactivate(l.VG, name) {
			gone := s.Done
			s.Done = func(r *lvm.Report) bool { return gone(r) || r.LV(l.VG, name) == nil || e.stands(l, r.LV(l.VG, name)) }
			plan = append(plan, s)
		}
	}
	return append(plan, lvm.Activate(l.VG, l.LV)...)
}

// tied are the logical volumes that stand or fall with one: itself, those of its
// pool, and the pool, in the order in which they can be let go of.
func (e *Engine) tied(l drivebay.Location) []string {
	out := []string{l.LV}
	if l.Pool == "" {
		return out
	}
	if g := e.lvmNow().group(l.VG); g != nil {
		for _, lv := range g.LVs {
			if lv.Pool == l.Pool && lv.Name != l.LV {
				out = append(out, lv.Name)
			}
		}
	}
	return append(out, l.Pool)
}

// filling ends the name of the leg that a move fills. It has nothing that the other one
// has not (lvm.Hold).
const filling = "-" + theMove + "_mimage_1"

// stands says whether an active volume has what it needs below it. A device that went
// since the report needs nothing.
func (e *Engine) stands(l drivebay.Location, lv *lvm.LV) bool {
	here := map[string]bool{}
	for _, id := range l.Drives {
		if p, ok := e.pvPart(id); ok {
			here[p.name] = true
		}
	}
	dir := "sys/dev/block/" + numOf(lv)
	if e.standsOn(l, dir, here) {
		return true
	}
	title, err := e.mapperName(dir)
	return err != nil || title != lvm.MapperName(l.VG, lv.Name)
}

// standsOn looks through the devices of pools, legs, moves and encryption that are in
// between. All of what is below has to be there, and of a mirror one leg.
func (e *Engine) standsOn(l drivebay.Location, dir string, here map[string]bool) bool {
	below, err := e.machine.ReadDir(dir + "/slaves")
	if err != nil {
		return false
	}
	title, _ := e.mapperName(dir)
	enough, stood := l.Kind == drivebay.LocationMirror && title == lvm.MapperName(l.VG, l.LV), false
	for _, name := range below {
		at := "sys/class/block/" + name
		if title, _ := e.mapperName(at); strings.HasSuffix(title, filling) {
			continue
		}
		stood = here[name] || strings.HasPrefix(name, "dm-") && e.standsOn(l, at, here)
		if stood == enough {
			break
		}
	}
	return stood
}

// mapperName is device-mapper's name of a device.
func (e *Engine) mapperName(dir string) (string, error) {
	b, err := e.machine.ReadFile(dir + "/dm/name")
	return strings.TrimSpace(string(b)), err
}
