package device

import (
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Partition returns the device of a volume that is a partition. It compares the index with sysfs: a drive
// may have gone and another have its name.
func (e *Opener) Partition(v *drivebay.Volume) (mounttable.Device, error) {
	p, ok := e.Partitions.Partition(v)
	if !ok {
		return mounttable.Device{}, fmt.Errorf("volume %s: partition %s: %w", v.ID, v.Location.Partition, e.NotHere(v))
	}
	if partitions.Ambiguous(e.Partitions.PartsOn(v.Location.Drives[0]), p) {
		return mounttable.Device{}, fmt.Errorf("volume %s: drive %s: %w", v.ID, v.Location.Drives[0], partitions.Away("it has two partitions named %s, and which one is meant is not read yet", p.Title))
	}
	at := "sys/dev/block/" + p.Num
	start, err := partitions.ReadNumber(e.Machine, at+"/start")
	size, err2 := partitions.ReadNumber(e.Machine, at+"/size")
	title, guid := partitions.KernelLabel(e.Machine, at) // udev may not have seen yet which partition this is
	if errors.Join(err, err2) != nil || start*512 != p.Start || size*512 < p.Size || (title != "" && title != p.Title) || !partitions.SameGUID(guid, p.GUID) {
		return mounttable.Device{}, fmt.Errorf("volume %s: partition %s: %w: device %s is another now", v.ID, v.Location.Partition, drivebay.ErrNotFound, p.Num)
	}
	p.Size = size * 512
	return p.Device, e.whole(v, p.Size)
}

// LogicalVolume returns the device of a volume that is an active logical volume.
func (e *Opener) LogicalVolume(v *drivebay.Volume) (mounttable.Device, error) {
	e.Ledger.Mu.Lock()
	g := e.Partitions.Index.LVM.Group(v.Location.VG)
	e.Ledger.Mu.Unlock()
	missing := func(why string) (mounttable.Device, error) {
		return mounttable.Device{}, fmt.Errorf("volume %s: logical volume %s/%s: %w: %s", v.ID, v.Location.VG, v.Location.LV, drivebay.ErrNotFound, why)
	}
	lv := partitions.LVIn(g, v.Location)
	if lv == nil {
		if err := e.NotHere(v); errors.Is(err, drivebay.ErrUnavailable) {
			return mounttable.Device{}, fmt.Errorf("volume %s: logical volume %s/%s: %w", v.ID, v.Location.VG, v.Location.LV, err)
		}
		return missing("LVM has no such volume")
	}
	if !lv.Active || lv.Major < 0 {
		return missing("it is not active")
	}
	num := groups.NumOf(lv)
	at := "sys/dev/block/" + num
	title, err := e.MountTable.MapperName(at)
	size, err2 := partitions.ReadNumber(e.Machine, at+"/size")
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
	return mounttable.Device{Dev: "/dev/" + name, Num: num, Name: name, Size: size * 512}, e.whole(v, size*512)
}

// whole refuses the piece of a recorded volume that is smaller than the volume. A copy that the volume has left, and what is
// reserved for its growth, are smaller.
func (e *Opener) whole(v *drivebay.Volume, size uint64) error {
	r, err := e.Ledger.Record(v.ID)
	if is, own := v.Location, r.Volume.Location; err != nil || is.Partition != own.Partition || is.VG != own.VG || is.LV != own.LV {
		return nil
	}
	if least := partitions.LeastOf(&r.Volume); size < least {
		return fmt.Errorf("volume %s: %v: %w: %s", v.ID, v.Location.Kind, partitions.Away("another program has made it smaller"), partitions.SmallerText(size, least))
	}
	return nil
}

// TheMove is LVM's name for the one move that a group can have.
const TheMove = "pvmove0"

// OrAway returns err, or why a volume cannot be reached: its drive is not here or not read, or LVM does not show the
// volume. A mirror is reached with one of its drives, and a replicated volume with the disk of its peer.
func (e *Opener) OrAway(v *drivebay.Volume, err error) error {
	e.Ledger.Mu.Lock()
	g := e.Partitions.Index.LVM.Group(v.Location.VG)
	e.Ledger.Mu.Unlock()
	lv := partitions.LVIn(g, v.Location)
	switch away := e.NotHere(v); {
	case lv != nil && v.Location.Mirrored(), e.Stack(v).Remote():
		return err
	case errors.Is(away, drivebay.ErrUnavailable):
		return away
	case v.Location.OnLVM() && lv == nil:
		return fmt.Errorf("logical volume %s/%s: %w", v.Location.VG, v.Location.LV, partitions.Away("LVM does not show it"))
	}
	return err
}

// NotHere returns the error for a volume whose device is not listed: ErrUnavailable if one of
// its drives is not here or not read, else ErrNotFound.
func (e *Opener) NotHere(v *drivebay.Volume) error {
	s := e.Drives.Snapshot()
	for _, id := range v.Location.Drives {
		d, known := steps.DriveOf(s, id)
		switch {
		case !known:
			continue
		case d.Status != drivebay.StatusOnline:
			return fmt.Errorf("drive %s: %w", id, partitions.Away("it is %v", d.Status))
		case partitions.Stuck(*d), d.Kernel != nil && d.Kernel.GivenUp():
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, partitions.Away("it does not answer"))
		}
		e.Ledger.Mu.Lock()
		parts, listed := e.Partitions.Index.Parts[id]
		x := e.Partitions.Index.LVM
		e.Ledger.Mu.Unlock()
		p, is := partitions.PVOn(parts)
		unseen := is && v.Location.OnLVM() && (x == nil || x.PVs[id] != p.Dev)
		if !listed || unseen || len(parts) == 0 && d.Content.Kind == drivebay.ContentUnknown {
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, partitions.AwayError(partitions.NotReadYet(d)))
		}
	}
	return drivebay.ErrNotFound
}
