package device

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
)

// A device that LVM made outlives the drive below it. When that drive is back, the
// device still leads to the one that went: every read of it fails, and LVM reports
// it as active. Only sysfs shows this (seen with Linux 6.1 and lvm2 2.03.16; a
// kernel name is given to no other drive while something is above it).

// Appearing plans the activation of a volume. A device whose drives went is deactivated
// first, and with such a thin pool all volumes of the pool.
func (e *Opener) Appearing(v *drivebay.Volume) []lvm.Step {
	return append(e.withoutGone(v.Location), lvm.Activate(v.Location.VG, v.Location.LV)...)
}

// LockGone locks a volume whose device in plain leads to a drive that went: the logical volume below is not deactivated before.
func (e *Opener) LockGone(ctx context.Context, v *drivebay.Volume) error {
	if !v.Encrypted() {
		return nil
	}
	m, is, err := e.Mapping(v)
	if err != nil || !is {
		return err
	}
	below, err := e.Machine.ReadDir("sys/block/" + m.Name + "/slaves")
	if err != nil || len(below) != 1 {
		return err
	}
	at := "sys/class/block/" + below[0]
	if title, err := e.MountTable.MapperName(at); err != nil || title != lvm.MapperName(v.Location.VG, v.Location.LV) {
		return nil // DRBD is between them, and holds the logical volume
	}
	if e.StandsOn(v.Location, at, e.partitionsHere(v.Location)) {
		return nil
	}
	return e.Lock(ctx, v)
}

// AppearingWhole is Appearing for a volume of which LVM has to see all parts.
func (e *Opener) AppearingWhole(v *drivebay.Volume) []lvm.Step {
	return append(e.withoutGone(v.Location), lvm.ActivateWhole(v.Location.VG, v.Location.LV)...)
}

// withoutGone plans to deactivate devices whose drives went.
func (e *Opener) withoutGone(l drivebay.Location) (plan []lvm.Step) {
	for _, name := range e.tied(l) {
		for _, s := range lvm.Deactivate(l.VG, name) {
			gone := s.Done
			s.Done = func(r *lvm.Report) bool { return gone(r) || r.LV(l.VG, name) == nil || e.stands(l, r.LV(l.VG, name)) }
			plan = append(plan, s)
		}
	}
	return plan
}

// tied returns the logical volumes to check with one: itself, the others of its pool,
// and the pool, in the order in which they can be deactivated.
func (e *Opener) tied(l drivebay.Location) []string {
	out := []string{l.LV}
	if l.Pool == "" {
		return out
	}
	if g := e.Groups.LVMNow().Group(l.VG); g != nil {
		for _, lv := range g.LVs {
			if lv.Pool == l.Pool && lv.Name != l.LV {
				out = append(out, lv.Name)
			}
		}
	}
	return append(out, l.Pool)
}

// filling is the end of the name of the leg that a move fills. All data of that leg is
// on the other one, too (lvm.System.KeepFailedWrites).
const filling = "-" + TheMove + "_mimage_1"

// partitionsHere returns the names of the physical volumes of a logical volume whose drives are here.
func (e *Opener) partitionsHere(l drivebay.Location) map[string]bool {
	here := map[string]bool{}
	for _, id := range l.Drives {
		if p, ok := e.Groups.PVPart(id); ok {
			here[p.Name] = true
		}
	}
	return here
}

// stands reports whether the drives that an active volume needs are below its device. A
// device that went since the report needs none.
func (e *Opener) stands(l drivebay.Location, lv *lvm.LV) bool {
	dir := "sys/dev/block/" + groups.NumOf(lv)
	if e.StandsOn(l, dir, e.partitionsHere(l)) {
		return true
	}
	title, err := e.MountTable.MapperName(dir)
	return err != nil || title != lvm.MapperName(l.VG, lv.Name)
}

// LegAttached reports whether the kernel still has the device below a leg of a mirror, whatever LVM and the partition table say of it. known: the
// leg is on nothing but a partition. The link from a mapped device to one that went stays, and the device itself
// is not in sysfs any more (block/holder.c; tried on Linux 6.1).
func (e *Opener) LegAttached(l drivebay.Location, num string, leg int) (is, known bool) {
	dir := "sys/dev/block/" + num
	if title, err := e.MountTable.MapperName(dir); err != nil || title != lvm.MapperName(l.VG, l.LV) {
		return false, false
	}
	images, _ := e.Machine.ReadDir(dir + "/slaves")
	for _, name := range images {
		at := "sys/class/block/" + name
		if title, _ := e.MountTable.MapperName(at); title != lvm.MapperName(l.VG, fmt.Sprintf("%s_rimage_%d", l.LV, leg)) {
			continue
		}
		below, err := e.Machine.ReadDir(at + "/slaves")
		if err != nil || len(below) != 1 || strings.HasPrefix(below[0], "dm-") {
			return false, err == nil && len(below) == 0
		}
		_, err = e.Machine.ReadFile("sys/class/block/" + below[0] + "/dev")
		return err == nil, true
	}
	return false, false
}

// StandsOn reports whether a device is on the devices in here, through those of pools,
// legs, moves and encryption in between. All below it must be there; of a mirror, one leg.
func (e *Opener) StandsOn(l drivebay.Location, dir string, here map[string]bool) bool {
	below, err := e.Machine.ReadDir(dir + "/slaves")
	if err != nil {
		return false
	}
	title, _ := e.MountTable.MapperName(dir)
	enough, stood := l.Kind == drivebay.LocationMirror && title == lvm.MapperName(l.VG, l.LV), false
	for _, name := range below {
		at := "sys/class/block/" + name
		if title, _ := e.MountTable.MapperName(at); strings.HasSuffix(title, filling) {
			continue
		}
		stood = here[name] || strings.HasPrefix(name, "dm-") && e.StandsOn(l, at, here)
		if stood == enough {
			break
		}
	}
	return stood
}
